"""Requests that hold pictures, which are on disk until the moment they are sent.

Messages name a picture by the hash of its content, ``kept:<hash>``, so that neither the
record nor a waiting run holds its bytes. The request is read from the disk while it is
written to the socket, one picture after the other: a call that waits for its answer holds
none, and nothing else in the process waits for megabytes to be encoded.
"""

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.processes.disk import run_on_disk_thread

KEPT = "kept:"
#: What the model is shown in the place of a picture whose copy is gone.
GONE = {"type": "text", "text": "[图片]"}
#: Bytes of a picture that are encoded at a time; a multiple of three, so that Base64 has no padding
#: between.
CHUNK = 3 * 2**15


@dataclass(frozen=True, slots=True)
class ModelPicture:
    """A file as a model is shown it."""

    mime: str
    size: int
    path: Path


#: From a content hash to its picture; None for one that is gone. Blocks.
PictureLoader = Callable[[str], ModelPicture | None]
Messages = Sequence[dict[str, Any]]


def picture_part(sha256: str) -> dict[str, Any]:
    """The part of a message's content that shows the kept picture of that hash."""
    return {"type": "image_url", "image_url": {"url": f"{KEPT}{sha256}"}}


def kept_hash(part: Any) -> str:
    """The hash of the kept picture that ``part`` shows, "" for any other part."""
    image = (
        part.get("image_url")
        if isinstance(part, dict) and part.get("type") == "image_url"
        else None
    )
    url = image.get("url") if isinstance(image, dict) else None
    return url.removeprefix(KEPT) if isinstance(url, str) and url.startswith(KEPT) else ""


def has_kept_pictures(messages: Messages) -> bool:
    return any(kept_hash(part) for message in messages for part in _parts(message))


class StreamedBody:
    """A request body of texts and pictures, read while it is sent, and from its beginning each
    time.

    A picture that is deleted meanwhile fails the request with OSError.
    """

    def __init__(self, pieces: Sequence[bytes | ModelPicture]) -> None:
        self._pieces = pieces
        self.size = sum(
            len(piece) if isinstance(piece, bytes) else -(-piece.size // 3) * 4 for piece in pieces
        )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                yield piece
                continue
            content = await run_on_disk_thread(piece.path.read_bytes)
            for start in range(0, len(content), CHUNK):
                yield base64.b64encode(content[start : start + CHUNK])
                await asyncio.sleep(0)  # the transport waits only when its buffer is full


async def encode_with_pictures(
    messages: Messages, album: PictureLoader, write: Callable[[Messages], bytes]
) -> StreamedBody:
    """What ``write`` makes of ``messages``, JSON, in which every kept picture is a data URL."""
    wanted = {kept_hash(part) for message in messages for part in _parts(message)} - {""}
    found = await run_on_disk_thread(lambda: {sha256: album(sha256) for sha256 in wanted})
    places: dict[str, ModelPicture] = {}
    placed = [_with_places(message, found, places) for message in messages]
    return StreamedBody(list(_cut(write(placed), places)))


def _parts(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _with_places(
    message: dict[str, Any], found: dict[str, ModelPicture | None], places: dict[str, ModelPicture]
) -> dict[str, Any]:
    """``message`` with a word that occurs nowhere else in the place of each picture, which is noted
    in ``places``."""
    parts = _parts(message)
    return (
        {**message, "content": [_with_place(part, found, places) for part in parts]}
        if parts
        else message
    )


def _with_place(
    part: Any, found: dict[str, ModelPicture | None], places: dict[str, ModelPicture]
) -> Any:
    sha256 = kept_hash(part)
    if not sha256:
        return part
    picture = found[sha256]
    if picture is None:
        return GONE
    place = uuid.uuid4().hex
    places[place] = picture
    return {
        "type": "image_url",
        "image_url": {**part["image_url"], "url": f"data:{picture.mime};base64,{place}"},
    }


def _cut(text: bytes, places: dict[str, ModelPicture]) -> Iterator[bytes | ModelPicture]:
    """``text`` cut at the places, which stand in it in their order, with the pictures between."""
    for place, picture in places.items():
        before, _, text = text.partition(place.encode())
        yield before
        yield picture
    yield text
