"""Model calls as conversations: who said what, and which tools were asked for. Pure."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from tools.readable import arguments_text, printable, readable, shortened


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a model call: who speaks, what is said, which tools are called as (name, arguments)."""

    role: str
    text: str
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def role_name(self) -> str:
        names = {"system": _("system"), "user": _("user"), "assistant": _("assistant"), "tool": _("tool")}
        return names.get(self.role, self.role)


def turns(messages: Any) -> list[Turn]:
    """Chat-completion messages one by one; anything else as one turn of JSON."""
    if not isinstance(messages, list):
        messages = [messages]
    return [turn(message) for message in messages]


def turn(message: Any) -> Turn:
    if not isinstance(message, dict) or not ("content" in message or "tool_calls" in message):
        return Turn("", readable(message))
    calls = message.get("tool_calls")
    return Turn(
        role=printable(str(message.get("role") or "assistant")),
        text=_content(message.get("content")),
        calls=[_call(call) for call in calls] if isinstance(calls, list) else [],
    )


def _content(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return printable(shortened(content))
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return readable(content)


def _part(part: Any) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return printable(shortened(part["text"]))
    return readable(part, limit=200)


def _call(call: Any) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return "", readable(call)
    return printable(str(function.get("name"))), arguments_text(function.get("arguments"))
