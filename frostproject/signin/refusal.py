"""The page for users who have to wait, in the style of the admin. Rendered once for each length of
the wait."""

from functools import lru_cache
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import translation

from frostproject.web.browser_policy import POLICY_HEADERS
from frostproject.web.http import Send


class SignInRefusal(Exception):  # noqa: N818 - an answer, not a fault
    """A try that is answered with ``status``, and may be repeated after ``seconds``; 0 for one that
    may not."""

    def __init__(self, status: int, seconds: int) -> None:
        super().__init__(status)
        self.status = status
        self.seconds = seconds


async def send_refusal(refusal: SignInRefusal, scope: dict[str, Any], send: Send) -> None:
    page = _page(refusal.status, refusal.seconds, _language(scope))
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(page)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *POLICY_HEADERS,
    ]
    if refusal.seconds:
        headers.append((b"retry-after", str(refusal.seconds).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": page})


def _language(scope: dict[str, Any]) -> str:
    """The language that the client has chosen, by the rules of Django's middleware."""
    request = HttpRequest()
    given = {name: value.decode("latin1") for name, value in scope["headers"]}
    request.META = {"HTTP_ACCEPT_LANGUAGE": given.get(b"accept-language", "")}
    return translation.get_language_from_request(request)


@lru_cache(maxsize=1_000)
def _page(status: int, seconds: int, language: str) -> bytes:
    with translation.override(language):
        return render_to_string(
            "admin/sign_in_refused.html", {"status": status, "seconds": seconds}
        ).encode()
