"""Pictures, voice, videos and files on their way out: from what is on record to what is written.

On record stands a web address, or ``file://`` and a path in the media folder. A client
on another machine, or in another container, cannot read that path, so files go out as
Base64 up to a size, and larger ones as the path. What a client refuses is made anew once,
all of it as Base64.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent import media_folder
from agent.media_folder import MediaError
from onebot import base64_file
from onebot.base64_file import Base64File
from onebot.segments import Segment
from tools.fetch.errors import FetchError
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchRequest

logger = logging.getLogger(__name__)

MEDIA = frozenset({"image", "record", "video", "file"})
#: The largest frame that is sent: NapCat closes the connection on more than 50 MiB.
MAX_FRAME_BYTES = 48 * 2**20
#: Bytes of files that one message takes along as Base64 at the first try.
INLINE_BYTES = 10 * 2**20
#: Bytes that fit into a frame as Base64, with 1 MiB left for words.
ROOM = (MAX_FRAME_BYTES - 2**20) // 4 * 3

_LOCAL = "file://"


def first_form(segments: Sequence[Segment], room: int) -> list[Segment]:
    """``segments`` as they are tried first: files as Base64 while they fit into ``room`` bytes, or by path.

    Reads files: blocks. Raises :class:`MediaError` for a file that is not there any more.
    """
    formed = []
    for segment in segments:
        path = local_path(segment)
        file = _read(path, room) if path else None
        room -= file.size if file else 0
        formed.append(_filled(segment, file) if file else segment)
    return formed


async def base64_form(segments: Sequence[Segment], fetcher: Fetcher) -> list[Segment]:
    """``segments`` with all media as Base64, that of web addresses loaded here.

    Raises :class:`MediaError` for what cannot be had, or does not fit into one frame.
    """
    room, formed = ROOM, []
    for segment in segments:
        file = await _as_base64(segment, room, fetcher)
        room -= file.size if file else 0
        formed.append(_filled(segment, file) if file else segment)
    return formed


def has_media(segments: Sequence[Segment]) -> bool:
    return any(segment["type"] in MEDIA for segment in segments)


def lone_file(segments: Sequence[Segment]) -> Segment | None:
    """The file that a message consists of: files travel alone, by an action of their own."""
    return segments[0] if len(segments) == 1 and segments[0]["type"] == "file" else None


def local_path(segment: Segment) -> Path | None:
    """The path of a media segment on this machine."""
    file = _file(segment)
    return Path(file.removeprefix(_LOCAL)) if file.startswith(_LOCAL) else None


def web_address(segment: Segment) -> str:
    """The address of a media segment, "" for another one."""
    file = _file(segment)
    return file if file.lower().startswith(("http://", "https://")) else ""


def file_name(segment: Segment) -> str:
    """What a file is to be called in the chat."""
    if name := segment["data"].get("name"):
        return str(name)
    path = local_path(segment)
    return path.name if path else unquote(urlsplit(web_address(segment)).path).rstrip("/").rpartition("/")[2] or "file"


def _file(segment: Segment) -> str:
    file = segment["data"].get("file") if segment["type"] in MEDIA else None
    return file if isinstance(file, str) else ""


def _filled(segment: Segment, file: Base64File) -> Segment:
    """``segment`` with its content; a file keeps the name that its path or address had."""
    name = {"name": file_name(segment)} if segment["type"] == "file" else {}
    return {"type": segment["type"], "data": {**segment["data"], "file": file, **name}}


async def _as_base64(segment: Segment, room: int, fetcher: Fetcher) -> Base64File | None:
    if address := web_address(segment):
        return await asyncio.to_thread(base64_file.encoded, await _downloaded(address, room, fetcher))
    path = local_path(segment)
    if path is None:
        return None
    file = await asyncio.to_thread(_read, path, room)
    if file is None:
        raise MediaError(f"{path.name} is too large to be sent as Base64: {room >> 20} MiB are left in a message")
    return file


async def _downloaded(address: str, room: int, fetcher: Fetcher) -> bytes:
    try:
        return (await fetcher.download(FetchRequest(address, max_bytes=room))).body
    except FetchError as error:
        logger.info("%s was not loaded to be sent as Base64: %s", address, error)
        raise MediaError(error.text) from error


def _read(path: Path, room: int) -> Base64File | None:
    with media_folder.opened(path) as file:
        content = base64_file.read(file, room)
    if content is not None and not content.size:
        raise MediaError(f"{path.name} is empty")
    return content
