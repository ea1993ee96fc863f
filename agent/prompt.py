"""What the model is shown of a message: a frame of one line, then the words exactly as they were said.

The frame is always the first line and always one line of JSON, made here. Names are
escaped by JSON, so no name can end it; everything after it, to the end of the
message, is the user's. A user may write a line that looks like a frame, but it is
never the first line, so it cannot pass for one.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from agent.llm.pictures import picture_part

ChatMessage = dict[str, Any]
NAME_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Speech:
    """What somebody said, with who, where and when."""

    text: str
    sender_id: str
    sender_name: str
    chat: str
    message_id: str = ""
    happened_at: datetime | None = None
    pictures: tuple[str, ...] = ()
    """Content hashes of kept pictures that the model is shown after the words."""


def frame(speech: Speech) -> str:
    """The one-line header that goes before the words."""
    sender: dict[str, str] = {"user_id": speech.sender_id}
    if name := _clean(speech.sender_name):
        sender["name"] = name
    header: dict[str, Any] = {"sender": sender, "chat": speech.chat}
    if speech.message_id:
        header["message_id"] = speech.message_id
    if speech.happened_at is not None:
        header["time"] = timezone.localtime(speech.happened_at).strftime("%Y-%m-%d %H:%M")
    return json.dumps(header, ensure_ascii=False)


def user_message(speech: Speech) -> ChatMessage:
    text = f"{frame(speech)}\n{speech.text}"
    if not speech.pictures:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [{"type": "text", "text": text}, *map(picture_part, speech.pictures)]}


def content_text(content: Any) -> str:
    """The words of a message's content: text, parts of which some are text, or nothing."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def outcome_message(speech: Speech, tool_name: str) -> ChatMessage:
    """What introduces the outcome of an earlier call, which follows: a frame like a person's, and no person's words."""
    asked = {"event": "tool_result", "tool": tool_name, "requested_by": speech.sender_id, "chat": speech.chat}
    if speech.message_id:
        asked["message_id"] = speech.message_id
    header = json.dumps(asked, ensure_ascii=False)
    return {"role": "user", "content": f"{header}\n此前的工具调用有了结果（见下）。请把结果告诉提出请求的人。"}


def words(content: str) -> str:
    """The user's words out of a framed message: the inverse of :func:`user_message`."""
    header, newline, text = content.partition("\n")
    return text if newline and header.startswith('{"sender"') else content


def assistant_message(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}


def system_message(text: str) -> ChatMessage:
    return {"role": "system", "content": text}


def _clean(name: str) -> str:
    return "".join(c for c in name if c.isprintable()).strip()[:NAME_LIMIT]
