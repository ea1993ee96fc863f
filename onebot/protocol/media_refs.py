"""The media and forwards in messages, read from their segments in every dialect. Pure.

A path that a client names is a path on its own machine, and is never kept as anything
that could be opened here.

Forwarded messages, one level at a time, in every client's dialect. Pure.

``get_forward_msg`` answers with ``messages`` (NapCat, LLBot, go-cqhttp) or ``message``
(the standard, Lagrange); each item has its content in ``message``, ``content`` or
``data.content``, and its sender in ``sender`` or ``data``. Forwards inside come with
their content (NapCat) or with an id to ask for.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from agent.domain.types import (
    ChatAddress,
    ForwardContent,
    ForwardedMessage,
    MediaKind,
    MediaOrigin,
    MediaRef,
)
from onebot.protocol.events import parse_time
from onebot.protocol.segments import (
    BASE64,
    KEPT,
    Segment,
    parse_handle,
    parse_id,
    parse_told,
    quoted_id,
    render_text,
    value_text,
)

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
    refs, counts = list[MediaRef](), Counter[MediaKind]()
    for segment in segments:
        kind = MEDIA_KINDS.get(segment["type"])
        if kind is not None:
            refs.append(_ref(kind, segment["data"], counts[kind], message_id, origin))
            counts[kind] += 1
    return refs


def parse_media_answer(kind: MediaKind, data: dict[str, object], like: MediaRef) -> MediaRef:
    """What a client says of one medium, in answer to a question about ``like``."""
    return _ref(kind, data, like.index, like.message_id, like.origin)


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


def _nodes(value: object) -> list[object]:
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
    kind: MediaKind, data: dict[str, object], index: int, message_id: str, origin: MediaOrigin
) -> MediaRef:
    url, file = value_text(data.get("url")), value_text(data.get("file"))
    inline = value_text(data.get("base64")) or next(
        (one.removeprefix(BASE64) for one in (url, file) if one.startswith(BASE64)), ""
    )
    kept = next((one.removeprefix(KEPT) for one in (inline, url, file) if one.startswith(KEPT)), "")
    name = value_text(data.get("name") or data.get("file_name") or data.get("filename"))
    size = parse_id(data.get("file_size"))
    return MediaRef(
        kind=kind,
        url=next(
            (one for one in (url, file) if one.lower().startswith(("http://", "https://"))), ""
        ),
        data=inline.removeprefix(BASE64) if not kept else "",
        sha256=kept if _HASH.fullmatch(kept) else "",
        file=file if len(file) <= 1_000 and not kept else "",
        file_id=parse_handle(data.get("file_id"), 1_000),
        busid=parse_id(data.get("busid")),
        file_hash=parse_handle(data.get("file_hash"), 1_000),
        name=(name or ("" if "://" in file else file))[:200],
        size=int(size) if size.isascii() and size.isdigit() and len(size) < 16 else 0,
        index=index,
        message_id=message_id,
        origin=origin,
    )


FORWARD_TYPES = ("forward", "node")
#: What stands for a forward among other words.
FORWARD_MARKER: Segment = {"type": "text", "data": {"text": "[聊天记录]"}}
#: Characters of a sender's name.
NAME_LIMIT = 200


def find_forwards(segments: Sequence[Segment]) -> list[tuple[Any, str]]:
    """What is forwarded in ``segments``, in order: its content, or None and the id to ask for it
    by."""
    found = list[tuple[Any, str]]()
    for segment in segments:
        if segment["type"] == "node":
            found.append(([segment], ""))
        elif segment["type"] == "forward":
            found.append((segment["data"].get("content"), value_text(segment["data"].get("id"))))
    return found


def parse_forwarded_messages(value: object, account: str) -> ForwardContent:
    """The messages of a forward, :data:`onebot.protocol.media_refs.NODES` at most: an answer of a
    client, or content it sent along."""
    if isinstance(value, dict):
        value = value.get("messages") or value.get("message") or value.get("content")
    nodes = [node for node in value if isinstance(node, dict)] if isinstance(value, list) else []
    return ForwardContent([parse_told_message(node, account) for node in nodes[:NODES]], len(nodes))


def belongs_to_chat(chat: ChatAddress, answer: dict[str, object]) -> bool:
    """Whether the answer to ``get_msg`` says that the message is of ``chat``. One that says nothing
    of it does not, as the standard's of groups."""
    if answer.get("message_type") != chat.kind or is_of_another_chat(chat, answer):
        return False
    sender = _object(answer.get("sender"))
    peers = (
        [answer.get("group_id")]
        if chat.kind == "group"
        else [answer.get("user_id"), sender.get("user_id"), answer.get("target_id")]
    )
    return chat.peer_id in map(parse_id, peers)


def is_of_another_chat(chat: ChatAddress, answer: dict[str, object]) -> bool:
    """Whether the answer to ``get_msg`` says that the message is of another chat than ``chat``. The
    standard's says nothing of groups, and whom the account's own words in private were for only
    some say (``target_id``)."""
    if answer.get("message_type") not in (chat.kind, None):
        return True
    group_id = parse_id(answer.get("group_id"))
    if chat.kind == "group":
        return group_id not in ("", "0", chat.peer_id)
    sender = _object(answer.get("sender"))
    people = {parse_id(answer.get("user_id")), parse_id(sender.get("user_id"))}
    people.add(parse_id(answer.get("target_id")))
    return group_id not in ("", "0") or not people <= {"", "0", chat.peer_id, chat.account}


def parse_told_message(node: dict[str, object], account: str) -> ForwardedMessage:
    """One message of a forward, or the answer to ``get_msg``."""
    data = _object(node.get("data")) if node.get("type") == "node" else {}
    sender = _object(node.get("sender"))
    segments = parse_told(node.get("message") or node.get("content") or data.get("content"))
    ids = (sender.get("user_id"), node.get("user_id"), data.get("user_id"), data.get("uin"))
    names = (sender.get("card"), sender.get("nickname"), data.get("nickname"), data.get("name"))
    return ForwardedMessage(
        text=render_text(
            [
                FORWARD_MARKER if segment["type"] in FORWARD_TYPES else segment
                for segment in segments
            ],
            account,
        ),
        segments=segments,
        sender_id=next(filter(None, map(parse_id, ids)), ""),
        sender_name=next(filter(None, map(value_text, names)), "")[:NAME_LIMIT],
        happened_at=parse_time(node.get("time") or data.get("time")),
        quoted_id=quoted_id(segments),
    )


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
