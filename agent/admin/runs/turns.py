"""Model calls as conversations: who said what, and which tools were asked for. Pure."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from tools.text.readable import arguments_text, drop_surrogates, format_readable, shorten_text


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message of a model call: who speaks, what is said, which tools are called as (name,
    arguments)."""

    role: str
    text: str
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def role_name(self) -> str:
        names = {
            "system": _("system"),
            "user": _("user"),
            "assistant": _("assistant"),
            "tool": _("tool"),
        }
        return names.get(self.role, self.role)


def parse_transcript(messages: Any) -> list[TranscriptMessage]:
    """Chat-completion messages one by one; anything else as one turn of JSON."""
    if not isinstance(messages, list):
        messages = [messages]
    return [parse_transcript_message(message) for message in messages]


def parse_transcript_message(message: Any) -> TranscriptMessage:
    if not isinstance(message, dict) or not ("content" in message or "tool_calls" in message):
        return TranscriptMessage("", format_readable(message))
    calls = message.get("tool_calls")
    return TranscriptMessage(
        role=drop_surrogates(str(message.get("role") or "assistant")),
        text=_content(message.get("content")),
        calls=[_call(call) for call in calls] if isinstance(calls, list) else [],
    )


def _content(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return drop_surrogates(shorten_text(content))
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return format_readable(content)


def _part(part: Any) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return drop_surrogates(shorten_text(part["text"]))
    return format_readable(part, limit=200)


def _call(call: Any) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "", format_readable(call)
    return drop_surrogates(str(function.get("name"))), arguments_text(function.get("arguments"))
