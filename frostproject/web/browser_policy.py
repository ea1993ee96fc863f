"""Headers of every page: load nothing from other sites, and use https only where that is set up."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from frostproject.web.static_versions import lasting_static

CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action "
    "'self'; frame-ancestors 'none'"
)
#: For a page that plays voice and videos which came over its own socket: they are in no file that
#: could be named. Nothing more may be loaded than elsewhere.
MEDIA_POLICY = f"{CONTENT_POLICY}; media-src 'self' data:"
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
            return _told(request, await get_response(request))

        return later
    return lambda request: _told(request, get_response(request))


def _told(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if not (
        settings.DEBUG and response.status_code >= 400
    ):  # Django's own error pages have their style inside
        response.headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
    if settings.SESSION_COOKIE_SECURE:
        response.headers.setdefault("Strict-Transport-Security", TRANSPORT_POLICY)
    lasting_static(request, response)
    return response


def allow_data_media(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """``view`` with :data:`MEDIA_POLICY`."""

    @functools.wraps(view)
    def allowed(*arguments: Any, **options: Any) -> HttpResponse:
        response = view(*arguments, **options)
        response.headers["Content-Security-Policy"] = MEDIA_POLICY
        return response

    return allowed
