"""One try to ask an endpoint that came to nothing: what happened, in words for the operator."""

import re
import ssl
from collections.abc import Iterator, Mapping

import httpx2

from agent.llm.errors.refusals import RefusalKind, classify_refusal

EXCERPT = 500
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
FAKE_IP = re.compile(r"\b198\.1[89]\.\d{1,3}\.\d{1,3}\b")
"""Addresses for tests of networks (RFC 2544): proxies give them out for names that they take
over."""


class FailedTry(Exception):  # noqa: N818 - it is one try of several
    """``kind`` is what it means (:class:`agent.llm.errors.refusals.RefusalKind`), ``status`` that
    of the answer, 0 where none came. ``is_repeated``: it may have repeated what it was sent, so
    that ``kind`` is somebody's words."""

    is_repeated = False

    def __init__(
        self,
        words: str,
        kind: RefusalKind = RefusalKind.OTHER,
        *,
        status: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(words)
        self.words = words
        self.kind = kind
        self.status = status
        self.headers = headers or {}


def refused_try(response: httpx2.Response, text: str) -> FailedTry:
    """What an answer means that is no success. ``text`` is its body."""
    status, kind = response.status_code, classify_refusal(response.status_code, text)
    words = f"the endpoint answered {status}: {excerpt(text)}{name_protocol(text)}"
    if response.is_redirect:
        kind, target = RefusalKind.WRONG_ADDRESS, response.headers.get("location", "")
        words = (
            f"the endpoint answered {status}: it sends to {excerpt(target.partition('?')[0])}; is "
            "that a page to sign in at, or the right address?"
        )
    elif is_page(text):
        words = f"the endpoint answered {status} with a web page{_title(text)}: {excerpt(text)}"
    return FailedTry(words, kind, status=status, headers=response.headers)


def unusable_try(content: str) -> FailedTry:
    """What a successful answer means that is no JSON."""
    if is_page(content):
        words = (
            f"the answer is not JSON but a web page{_title(content)}: is the address that of an "
            f"OpenAI-compatible API? Most end in /v1. It says: {excerpt(content)}"
        )
        return FailedTry(words, RefusalKind.WRONG_ADDRESS, status=200)
    return FailedTry(f"the answer is not JSON: {excerpt(content)}", status=200)


def error_try(error: object, text: str) -> FailedTry:
    """What an ``error`` in a successful answer means; ``text`` is that answer, or its end."""
    code = error.get("code") if isinstance(error, dict) else None
    status = code if type(code) is int and 400 <= code < 600 else 200
    said = error.get("message") if isinstance(error, dict) else error
    words = f"the endpoint answered with an error: {excerpt(str(said or error))}"
    return FailedTry(words, classify_refusal(status, text), status=status)


def lost_try(error: Exception) -> FailedTry:
    """What it means that no answer came."""
    causes = list(causes_of(error))
    said = excerpt(str(error) or type(causes[-1]).__name__)
    words = f"the endpoint cannot be reached: {said}"
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        words = (
            "the endpoint cannot be reached: its certificate is not trusted (self-signed, expired, "
            f"or made for another name): {said}"
        )
    elif isinstance(causes[-1], ssl.SSLError):
        words = (
            f"the endpoint cannot be reached: it does not speak TLS (is it http:// and not "
            f"https://?): {said}"
        )
    elif any(FAKE_IP.search(str(cause)) for cause in causes):
        words = (
            "the endpoint cannot be reached: a proxy took over its name (fake-ip mode) and refused "
            f"the connection; check the proxy's rules: {said}"
        )
    return FailedTry(words, RefusalKind.DOWN)


def name_protocol(answer: object) -> str:
    """Which other protocol ``answer``, a body or its JSON, is of, as the rest of a sentence; "" for
    none that is known."""
    if isinstance(answer, str):
        is_anthropic = '"type":"error"' in answer.replace(" ", "")[:EXCERPT]
    elif isinstance(answer, dict):
        is_anthropic = answer.get("type") == "message" and isinstance(answer.get("content"), list)
        if "candidates" in answer:
            return f" (this is Gemini's own protocol; {_COMPATIBLE})"
        if "output" in answer and answer.get("object") == "response":
            return " (this is OpenAI's Responses protocol; enter the address of its API alone)"
        if "message" in answer and "done" in answer:
            return " (this is Ollama's own protocol; enter its address with /v1)"
    else:
        return ""
    return f" (this is Anthropic's protocol; {_COMPATIBLE})" if is_anthropic else ""


_COMPATIBLE = "enter the address of its OpenAI-compatible API"


def is_page(text: str) -> bool:
    """Whether ``text`` is HTML or the like."""
    return text.lstrip("\ufeff \t\r\n")[:1] == "<"


def excerpt(text: str) -> str:
    return " ".join(text[: 8 * EXCERPT].split())[:EXCERPT]


def _title(page: str) -> str:
    found = _TITLE.search(page)
    return f" “{excerpt(found[1])}”" if found else ""


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what is behind it, itself first."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen and len(seen) < 20:
        seen.append(cause)
        yield cause
        inner = getattr(cause, "certificate_error", None) or getattr(cause, "os_error", None)
        cause = inner or cause.__cause__ or cause.__context__
