"""Model calls as conversations: who said what, and which tools were asked for. Pure."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from agent.llm.requests.tokens import MESSAGE, PICTURE, estimate_text_tokens
from tools.text.readable import (
    TEXT_LIMIT,
    arguments_text,
    drop_surrogates,
    format_readable,
    shorten_text,
)


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message of a model call: who speaks, what is said, which tools are called as (name,
    arguments)."""

    role: str
    text: str
    calls: list[tuple[str, str]] = field(default_factory=list)
    characters: int = 0
    """Of its words and the arguments of its calls, before anything is cut for the page."""
    tokens: int = 0
    """Of the same, estimated."""

    @property
    def role_name(self) -> str:
        names = {
            "system": _("system"),
            "user": _("user"),
            "assistant": _("assistant"),
            "tool": _("tool"),
        }
        return names.get(self.role, self.role)


def parse_transcript(messages: Any, limit: int = TEXT_LIMIT) -> list[TranscriptMessage]:
    """Chat-completion messages one by one, of each text at most ``limit`` characters; anything
    else as one turn of JSON."""
    if not isinstance(messages, list):
        messages = [messages]
    return [parse_transcript_message(message, limit) for message in messages]


def parse_transcript_message(message: Any, limit: int = TEXT_LIMIT) -> TranscriptMessage:
    if not isinstance(message, dict) or not ("content" in message or "tool_calls" in message):
        return TranscriptMessage("", format_readable(message, limit=limit))
    characters, tokens = _measure(message)
    calls = message.get("tool_calls")
    return TranscriptMessage(
        role=drop_surrogates(str(message.get("role") or "assistant")),
        text=_content(message.get("content"), limit),
        calls=[_call(call) for call in calls] if isinstance(calls, list) else [],
        characters=characters,
        tokens=tokens,
    )


def _measure(message: dict[str, Any]) -> tuple[int, int]:
    """Characters and estimated tokens of a message."""
    content, calls = message.get("content"), message.get("tool_calls")
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    pictures = sum(isinstance(part, dict) and "image_url" in part for part in parts)
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            texts += [function.get("name"), function.get("arguments")]
    words = [text for text in texts if isinstance(text, str)]
    tokens = sum(map(estimate_text_tokens, words)) + MESSAGE + pictures * PICTURE
    return sum(map(len, words)), round(tokens)


def _content(content: Any, limit: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return drop_surrogates(shorten_text(content, limit))
    if isinstance(content, list):
        return "\n".join(_part(part, limit) for part in content)
    return format_readable(content, limit=limit)


def _part(part: Any, limit: int) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return drop_surrogates(shorten_text(part["text"], limit))
    return format_readable(part, limit=200)


def _call(call: Any) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "", format_readable(call)
    return drop_surrogates(str(function.get("name"))), arguments_text(function.get("arguments"))
