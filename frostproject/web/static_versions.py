"""Static files that browsers keep: their addresses change with their content.

There is no collectstatic step, so names have no hash. Instead every address that a template makes
ends in ``?v=`` and the hash of the file, and :func:`lasting_static` lets a browser keep for a year
what was asked for under the hash that it still has. Files that other files name, such as pictures
in style sheets and modules in scripts, have no version and are asked for again after a minute.

Nothing is compressed here: pages hold tokens beside what strangers wrote, and a token can be
guessed from the compressed size of both (BREACH). A proxy may compress ``/static/`` alone.
"""

import hashlib
from functools import cache
from pathlib import Path

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
