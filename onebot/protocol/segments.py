"""Message segments: the three shapes of ``message`` as one list, and what the agent reads of it.

A segment is ``{"type": str, "data": dict}``; values in ``data`` may be of any JSON
type, for clients send ids as integers, strings and floats alike.
"""

from collections.abc import Sequence
from typing import Any

from agent.domain.types import Mention, MessagePart
from onebot.protocol.cq import parse_cq
from onebot.protocol.segment_words import segment_words
from onebot.protocol.values import LONGEST_MESSAGE_ID, parse_id, value_text

__all__ = [
    "Segment",
    "find_mentions",
    "mentions_account",
    "parse_id",
    "parse_message",
    "parse_told",
    "quoted_id",
    "render_text",
    "segments_from_parts",
    "spoken_text",
]

Segment = dict[str, Any]
#: Characters of a mentioned person's name that are read.
LONGEST_NAME = 200
#: Segments of one message that a client tells of when it is asked; nobody is shown more.
MOST_TOLD = 500


def parse_message(value: object) -> list[Segment]:
    """The ``message`` of an event as segments: an array, a CQ string or one segment object.

    Anything else is an empty message; items that are no segments are left out.
    """
    if isinstance(value, str):
        return parse_cq(value)
    items = value if isinstance(value, list) else [value]
    return [segment for item in items if (segment := _segment(item))]


def parse_told(value: object) -> list[Segment]:
    """The same for a message in the answer to a question: of a very long one, its beginning."""
    return parse_message(value[:MOST_TOLD] if isinstance(value, list) else value)[:MOST_TOLD]


def render_text(segments: Sequence[Segment], self_id: str) -> str:
    """The message as the model reads it, the bot's own mention dropped and the ends trimmed.

    See :mod:`onebot.protocol.segment_words`.
    """
    return "".join(
        segment_words(segment["type"], segment["data"])
        for segment in segments
        if not _is_mention(segment, self_id)
    ).strip()


def spoken_text(segments: Sequence[Segment]) -> str:
    """The joined ``text`` segments alone, untrimmed: what the sender typed."""
    return "".join(
        _word(segment["data"], "text") for segment in segments if segment["type"] == "text"
    )


def mentions_account(segments: Sequence[Segment], self_id: str) -> bool:
    """Whether the message mentions ``self_id`` itself; a mention of all does not count."""
    return any(_is_mention(segment, self_id) for segment in segments)


def find_mentions(segments: Sequence[Segment], self_id: str) -> tuple[Mention, ...]:
    """The people that the message mentions, each once, in order; neither ``self_id`` nor everybody.

    NapCat writes "0" where it does not know whom.
    """
    people: dict[str, str] = {}
    for segment in segments:
        if segment["type"] == "at":
            user_id = parse_id(segment["data"].get("qq"))
            if user_id not in ("", "0", "all", self_id):
                people[user_id] = people.get(user_id) or _mention_name(segment["data"])
    return tuple(Mention(user_id, name) for user_id, name in people.items())


def quoted_id(segments: Sequence[Segment]) -> str:
    """The id of the message that the first ``reply`` segment quotes.

    "" when nothing is quoted, also for the "0" some clients send when they do not know what.
    """
    ids = (
        parse_id(segment["data"].get("id"), LONGEST_MESSAGE_ID)
        for segment in segments
        if segment["type"] == "reply"
    )
    found = next(ids, "")
    return "" if found == "0" else found


def segments_from_parts(parts: Sequence[MessagePart]) -> list[Segment]:
    """Parts of a ``send_message`` call as segments to send; every value is a string.

    Strings because some clients (Lagrange) refuse a whole call over one integer.
    """
    return [{"type": kind, "data": data} for kind, data in map(_from_part, parts)]


def _segment(item: object) -> Segment | None:
    if not isinstance(item, dict):
        return None
    kind, data = item.get("type"), item.get("data")
    if not isinstance(kind, str) or not kind:
        return None
    return {"type": kind, "data": data if isinstance(data, dict) else {}}


def _word(data: Segment, key: str) -> str:
    return value_text(data.get(key))


def _is_mention(segment: Segment, self_id: str) -> bool:
    return (
        segment["type"] == "at" and self_id != "" and parse_id(segment["data"].get("qq")) == self_id
    )


def _mention_name(data: Segment) -> str:
    return _word(data, "name")[:LONGEST_NAME].strip().removeprefix("@")


def _from_part(part: MessagePart) -> tuple[str, dict[str, str]]:
    match part.type:
        case "plain":
            return "text", {"text": part.text}
        case "mention_user":
            return "at", {"qq": part.mention_user_id}
        case "quote":
            return "reply", {"id": part.message_id}
        case media:
            return media, {"file": part.url or f"file://{part.path}"}
