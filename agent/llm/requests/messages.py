"""What the model is shown of a message: a frame of one line, then the words as they were said.

The frame is always the first line and always one line of JSON, made here. Names are escaped by
JSON, so no name can end it; everything after it, to the end of the message, came from the user. Its
mark occurs in no text from outside (:mod:`tools.text.fences`), and one message has the same form in
every request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.utils import timezone

from agent.llm.requests.images import picture_part
from tools.local_time import find_zone
from tools.text import fences

ChatMessage = dict[str, Any]
#: Of a sender in a group; what else a client says is not shown.
ROLES = ("owner", "admin", "member")


@dataclass(frozen=True, slots=True)
class SpokenMessage:
    """The text of a message, with who, where and when. ``seen`` is the text read from its media,
    under labels."""

    text: str
    sender_id: str
    sender_name: str
    chat: str
    message_id: str = ""
    happened_at: datetime | None = None
    seen: str = ""
    pictures: tuple[str, ...] = ()
    """Content hashes of kept pictures that the model is shown after the words."""
    sender_role: str = ""
    bot: str = ""
    """The number of the account that it was said to."""
    header: Mapping[str, Any] | None = None
    """``chat_name`` and ``mentions`` of a group's message, and the ``zone`` of its time where that
    was not the machine's, as they were recorded with it. Without a header the frame has no role
    and no bot either: so a message of an earlier version keeps its frame. A private one has neither
    in any case."""
    context: str = ""
    """The fenced words of what it quotes and forwards, as they follow its own."""


def build_speaker_frame(speech: SpokenMessage) -> str:
    """The one-line header that goes before the words."""
    header = speech.header or {}
    mentions = header.get("mentions") or ()
    at, zone = speech.happened_at, find_zone(header.get("zone") or settings.MACHINE_TIME_ZONE)
    is_private = speech.chat.startswith("private:")
    return _frame(
        speech.sender_id,
        speech.sender_name,
        None if speech.header is None or is_private else speech.sender_role,
        speech.chat,
        header.get("chat_name") or "",
        speech.bot,
        speech.message_id,
        "" if at is None else timezone.localtime(at, zone).strftime("%Y-%m-%d %H:%M"),
        tuple((one["user_id"], one.get("name", "")) for one in mentions),
    )


@lru_cache(maxsize=5_000, typed=True)  # each message stands in the history of many requests
def _frame(
    sender_id: str,
    sender_name: str,
    role: str | None,
    chat: str,
    chat_name: str,
    bot: str,
    message_id: str,
    time: str,
    mentions: tuple[tuple[str, str], ...],
) -> str:
    """``role`` is None for a message without a header of its own."""
    sender = _person(sender_id, sender_name)
    header: dict[str, Any] = {"sender": sender, "chat": chat}
    if role is not None:
        if role in ROLES:
            sender["role"] = role
        if chat_name:
            header["chat_name"] = chat_name
        header["bot"] = bot
    if message_id:
        header["message_id"] = message_id
    if time:
        header["time"] = time
    if mentions:  # PostgreSQL does not keep the order of keys
        header["mentions"] = [_person(*one) for one in mentions]
    return fences.build_frame(fences.PERSON, header)


def _person(user_id: str, name: str) -> dict[str, str]:
    person = {"user_id": user_id}
    if name := fences.clean_name(name):
        person["name"] = name
    return person


def user_message(speech: SpokenMessage) -> ChatMessage:
    said = fences.neutralize_marks(speech.text)
    if speech.seen:
        said = (said + fences.strip_marks(speech.seen)).strip()
    text = f"{build_speaker_frame(speech)}\n{said}"
    if speech.context:
        text = f"{text}\n{speech.context}"
    if not speech.pictures:
        return {"role": "user", "content": text}
    return {
        "role": "user",
        "content": [{"type": "text", "text": text}, *map(picture_part, speech.pictures)],
    }


def content_text(content: Any) -> str:
    """The words of a message's content: text, parts of which some are text, or nothing."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(
        part["text"]
        for part in content
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    )


def outcome_message(speech: SpokenMessage, tool_name: str) -> ChatMessage:
    """What introduces the outcome of an earlier call, which follows: a frame like a person's, and
    no person's words."""
    asked = {
        "event": "tool_result",
        "tool": tool_name,
        "requested_by": speech.sender_id,
        "chat": speech.chat,
    }
    if speech.message_id:
        asked["message_id"] = speech.message_id
    header = fences.build_frame(fences.OUTCOME, asked)
    return {
        "role": "user",
        "content": f"{header}\n此前的工具调用有了结果（见下）。请把结果告诉提出请求的人。",
    }


def strip_frame(content: str) -> str:
    """What stands below the frame of a user's message; all of a message without one."""
    header, newline, text = content.partition("\n")
    return text if newline and fences.is_framed(header) else content


def assistant_message(text: str) -> ChatMessage:
    """What the bot said before; it may have been asked to say a frame."""
    return {"role": "assistant", "content": fences.neutralize_marks(text)}


def system_message(text: str) -> ChatMessage:
    return {"role": "system", "content": text}
