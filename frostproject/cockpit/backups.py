"""A daily backup as a download."""

import asyncio
from collections.abc import AsyncIterator
from typing import IO

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, StreamingHttpResponse

from agent.domain.states import ActKind
from agent.record.waiting.operator_acts import record_act
from agent.runtime.daily_backup import list_backups
from tools.admin.record_pages import author_of

PIECE = 2**18


def download(request: HttpRequest, site: AdminSite, name: str) -> StreamingHttpResponse:
    """One of them, for superusers. Each is on record as an act."""
    if not request.user.is_superuser:
        raise PermissionDenied
    file = next((one for one in list_backups() if one.name == name), None)
    if file is None:
        raise Http404
    try:
        stream = file.open("rb")
    except OSError as error:  # deleted meanwhile
        raise Http404 from error
    record_act(ActKind.EXPORT, None, author_of(request), detail=file.name)
    return StreamingHttpResponse(
        _read(stream),
        content_type="application/zip",
        headers={
            "Content-Disposition": f'attachment; filename="{file.name}"',
            "Cache-Control": "no-store",
        },
    )


async def _read(stream: IO[bytes]) -> AsyncIterator[bytes]:
    with stream:
        while piece := await asyncio.to_thread(stream.read, PIECE):
            yield piece
