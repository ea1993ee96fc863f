"""Headers of every page: load nothing from other sites, and use https only where that is set up."""

import inspect
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action "
    "'self'; frame-ancestors 'none'"
)
#: The same for pages that are made outside Django.
POLICY_HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-frame-options", b"DENY"),
)
#: 30 days, and this name alone: who lets https go is locked out for a month at most. Browsers obey
#: it over https only.
TRANSPORT_POLICY = "max-age=2592000"


@sync_and_async_middleware
def browser_policy(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware, outermost, so that static files and refusals have it too."""
    if inspect.iscoroutinefunction(get_response):

        async def later(request: HttpRequest) -> HttpResponse:
            return _told(await get_response(request))

        return later
    return lambda request: _told(get_response(request))


def _told(response: HttpResponse) -> HttpResponse:
    if not (
        settings.DEBUG and response.status_code >= 400
    ):  # Django's own error pages have their style inside
        response.headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
    if settings.SESSION_COOKIE_SECURE:
        response.headers.setdefault("Strict-Transport-Security", TRANSPORT_POLICY)
    return response
