"""Headers of every page: load nothing from other sites, and use https only where that is set up.

Static files that browsers keep: their addresses change with their content.

There is no collectstatic step, so names have no hash. Instead every address that a template makes
ends in ``?v=`` and the hash of the file, and :func:`lasting_static` lets a browser keep for a year
what was asked for under the hash that it still has. Files that other files name, such as pictures
in style sheets and modules in scripts, have no version and are asked for again after a minute.

Nothing is compressed here: pages hold tokens beside what strangers wrote, and a token can be
guessed from the compressed size of both (BREACH). A proxy may compress ``/static/`` alone.
"""

import functools
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse

LASTING = "max-age=31536000, public, immutable"


class VersionedStaticFiles(StaticFilesStorage):
    """Addresses of static files, each with the version of its file."""

    def url(self, name: str | None) -> str:
        address = super().url(name)
        version = static_version(name or "")
        return f"{address}?v={version}" if version else address


@cache
def static_version(name: str) -> str:
    """The beginning of a file's hash; "" for a file that is not there. Files change with the
    program, so once a process is enough."""
    found = finders.find(name)
    if not isinstance(found, str):
        return ""
    return hashlib.sha256(Path(found).read_bytes()).hexdigest()[:12]


def lasting_static(request: HttpRequest, response: HttpResponse) -> None:
    """Have browsers keep a static file that was asked for under its own version."""
    root, wanted = settings.STATIC_URL, request.GET.get("v")
    is_there = wanted and request.path.startswith(root) and response.status_code in (200, 304)
    if is_there and wanted == static_version(request.path.removeprefix(root)):
        response.headers["Cache-Control"] = LASTING


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


def browser_policy(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware, outermost, so that static files and refusals have it too."""
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
    def allowed(*arguments: object, **options: object) -> HttpResponse:
        response = view(*arguments, **options)
        response.headers["Content-Security-Policy"] = MEDIA_POLICY
        return response

    return allowed
