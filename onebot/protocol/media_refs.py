"""The media and forwards in messages, read from their segments in every dialect. Pure.

A path that a client names is a path on its own machine, and is never kept as anything
that could be opened here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from agent.domain.media_refs import MediaKind, MediaOrigin, MediaRef
from onebot.protocol.segments import Segment, parse_told
from onebot.protocol.values import BASE64, KEPT, parse_id, value_text

#: Segment types that hold media. "mface" is a sticker from the shop, which other clients send as an
#: image.
MEDIA_KINDS: dict[str, MediaKind] = {
    "image": "image",
    "mface": "image",
    "record": "record",
    "video": "video",
    "file": "file",
}
#: Messages of a forward that are read, and how deep nested forwards are followed.
NODES, DEPTH = 100, 3
#: What stands for the hash of a file that came as Base64 and could not be kept.
LOST_FILE = "lost"
_HASH = re.compile(f"[0-9a-f]{{64}}|{LOST_FILE}")


def parse_media_refs(
    segments: Sequence[Segment], message_id: str = "", origin: MediaOrigin = "message"
) -> list[MediaRef]:
    """The media in ``segments``, in order."""
    refs, places = list[MediaRef](), Counter[MediaKind]()
    for segment in segments:
        kind = MEDIA_KINDS.get(segment["type"])
        if kind is not None:
            refs.append(_ref(kind, segment["data"], places[kind], message_id, origin))
            places[kind] += 1
    return refs


def parse_media_answer(kind: MediaKind, data: dict[str, Any], like: MediaRef) -> MediaRef:
    """What a client says of one medium, in answer to a question about ``like``."""
    return _ref(kind, data, like.place, like.message_id, like.origin)


def find_forward_ids(segments: Sequence[Segment]) -> list[str]:
    """The ids of forwards whose content has to be asked for."""
    ids = (
        value_text(s["data"].get("id"))
        for s in segments
        if s["type"] == "forward" and not s["data"].get("content")
    )
    return [one for one in ids if one]


def has_forward(segments: Sequence[Segment]) -> bool:
    return any(segment["type"] in ("forward", "node") for segment in segments)


def parse_forward(value: object) -> list[list[Segment]]:
    """The segments of each message in a forward, :data:`NODES` at most: the answer to
    ``get_forward_msg``."""
    return list(islice(_walk(value, DEPTH), NODES))


def find_inner_segments(segments: Sequence[Segment]) -> list[list[Segment]]:
    """The segments of the messages that are forwarded in ``segments`` together with their
    content."""
    return [
        found for content in _contents(segments) for found in islice(_walk(content, DEPTH), NODES)
    ]


def _walk(value: object, depth: int) -> Iterator[list[Segment]]:
    for node in _nodes(value) if depth else []:
        segments = parse_told(_content(node))
        yield segments
        for content in _contents(segments):
            yield from _walk(content, depth - 1)


def _contents(segments: Sequence[Segment]) -> list[Any]:
    return [
        s["data"]["content"]
        for s in segments
        if s["type"] in ("forward", "node") and s["data"].get("content")
    ]


def _nodes(value: object) -> list[Any]:
    if isinstance(value, dict):
        value = value.get("messages") or value.get("message") or value.get("content")
    return value[:NODES] if isinstance(value, list) else []


def _content(node: object) -> object:
    """``message`` in NapCat, ``content`` in LLBot and go-cqhttp, ``data.content`` by the
    standard."""
    if not isinstance(node, dict):
        return None
    data = node.get("data")
    inner = data.get("content") if isinstance(data, dict) and node.get("type") == "node" else None
    return node.get("message") or node.get("content") or inner


def _ref(
    kind: MediaKind, data: dict[str, Any], place: int, message_id: str, origin: MediaOrigin
) -> MediaRef:
    url, file = value_text(data.get("url")), value_text(data.get("file"))
    inline = value_text(data.get("base64")) or next(
        (one.removeprefix(BASE64) for one in (url, file) if one.startswith(BASE64)), ""
    )
    kept = next((one.removeprefix(KEPT) for one in (inline, url, file) if one.startswith(KEPT)), "")
    size = parse_id(data.get("file_size"))
    return MediaRef(
        kind=kind,
        url=next(
            (one for one in (url, file) if one.lower().startswith(("http://", "https://"))), ""
        ),
        data=inline.removeprefix(BASE64) if not kept else "",
        sha256=kept if _HASH.fullmatch(kept) else "",
        file=file if len(file) <= 1_000 and not kept else "",
        file_id=parse_id(data.get("file_id"), 1_000),
        busid=parse_id(data.get("busid")),
        file_hash=parse_id(data.get("file_hash"), 1_000),
        name=_name(data, file),
        size=int(size) if size.isascii() and size.isdigit() and len(size) < 16 else 0,
        place=place,
        message_id=message_id,
        origin=origin,
    )


def _name(data: dict[str, Any], file: str) -> str:
    named = value_text(data.get("name") or data.get("file_name") or data.get("filename"))
    return (named or ("" if "://" in file else file))[:200]
