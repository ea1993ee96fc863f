"""Pictures, voice, videos and files to be sent: from the form on record to the form on the wire.

On record stands a URL, or ``file://`` and a path in the media folder. A client on another machine,
or in another container, cannot read that path, so files go out as Base64 up to a size, and larger
ones as the path. If a client refuses a message, it is rebuilt once with everything as Base64. URLs
are handled by :mod:`onebot.gateway.delivery`.
"""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent.domain.errors import MediaError
from agent.media import media_folder
from onebot.protocol import base64_file
from onebot.protocol.base64_file import Base64File
from onebot.protocol.segments import Segment
from onebot.protocol.values import BASE64

MEDIA_TYPES = frozenset({"image", "record", "video", "file"})
#: The largest frame that is sent: NapCat closes the connection on more than 50 MiB.
MAX_FRAME_BYTES = 48 * 2**20
#: Bytes of files that one message takes along as Base64 at the first try.
INLINE_BYTES = 10 * 2**20
#: Bytes of files and of what is named by URL that fit into a frame as Base64, with 1 MiB left for
#: words.
INLINE_ROOM_BYTES = 35 * 2**20

_LOCAL = "file://"


def to_first_attempt(segments: Sequence[Segment], room: int) -> list[Segment]:
    """``segments`` as they are tried first: files as Base64 while they fit into ``room`` bytes, or
    by path.

    Reads files: blocks. Raises :class:`MediaError` for a file that is not there any more.
    """
    formed = []
    for segment in segments:
        path = local_path(segment)
        file = _read(path, room) if path else None
        room -= file.size if file else 0
        formed.append(fill_segment(segment, file) if file else segment)
    return formed


def to_base64_attempt(segments: Sequence[Segment], room: int) -> list[Segment]:
    """``segments`` with all files as Base64.

    Reads files: blocks. Raises :class:`MediaError` for what is not there, or does not fit into
    ``room`` bytes.
    """
    formed = []
    for segment in segments:
        path = local_path(segment)
        file = _whole(path, room) if path else None
        room -= file.size if file else 0
        formed.append(fill_segment(segment, file) if file else segment)
    return formed


def has_media(segments: Sequence[Segment]) -> bool:
    return any(segment["type"] in MEDIA_TYPES for segment in segments)


def single_file(segments: Sequence[Segment]) -> Segment | None:
    """The file that a message consists of: files travel alone, by an action of their own."""
    return segments[0] if len(segments) == 1 and segments[0]["type"] == "file" else None


def local_path(segment: Segment) -> Path | None:
    """The path of a media segment on this machine."""
    file = _file(segment)
    return Path(file.removeprefix(_LOCAL)) if file.startswith(_LOCAL) else None


def media_url(segment: Segment) -> str:
    """What a media segment names that is no file of this machine, however it is spelled; "" for
    another segment.

    Clients read more spellings than begin with ``http://``, so all of them are judged.
    """
    file = _file(segment)
    return "" if file.startswith((_LOCAL, BASE64)) else file


def loaded_bytes(segments: Sequence[Segment]) -> int:
    """Bytes of the media that are Base64 already, counted before encoding."""
    files = (segment["data"].get("file") for segment in segments)
    return sum(file.size for file in files if isinstance(file, Base64File))


def sent_file_name(segment: Segment) -> str:
    """The name of a file in the chat."""
    if name := segment["data"].get("name"):
        return str(name)
    path = local_path(segment)
    return (
        path.name
        if path
        else unquote(urlsplit(media_url(segment)).path).rstrip("/").rpartition("/")[2] or "file"
    )


def fill_segment(segment: Segment, file: Base64File) -> Segment:
    """``segment`` with its content; a file keeps the name that its path or address had."""
    name = {"name": sent_file_name(segment)} if segment["type"] == "file" else {}
    return {"type": segment["type"], "data": {**segment["data"], "file": file, **name}}


def _file(segment: Segment) -> str:
    file = segment["data"].get("file") if segment["type"] in MEDIA_TYPES else None
    return file if isinstance(file, str) else ""


def _whole(path: Path, room: int) -> Base64File:
    file = _read(path, room)
    if file is None:
        raise MediaError(
            f"{path.name} is too large to be sent as Base64: {room >> 20} MiB are left in a message"
        )
    return file


def _read(path: Path, room: int) -> Base64File | None:
    with media_folder.open_media_file(path) as file:
        content = base64_file.read_base64(file, room)
    if content is not None and not content.size:
        raise MediaError(f"{path.name} is empty")
    return content
