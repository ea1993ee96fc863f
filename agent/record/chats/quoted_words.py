"""The words of quoted and forwarded messages as a message keeps them, fenced, and how those that
are recalled leave them. Pure.

Each quoted message is one line of JSON with its ``message_id``; what it quotes or forwards itself
is nested in it.
"""

import json
from typing import Any

from tools.text.fences import json_line

RECALLED = "（已撤回）"
#: What of a recalled message may still be told.
_TOLD = ("message_id", "from_bot", "sender", "time")


def has_quoted(context_text: str, message_id: str) -> bool:
    """Whether a message with this id may be quoted in ``context_text``."""
    return quoted_mark(message_id) in context_text


def quoted_mark(message_id: str) -> str:
    """What every text holds in which the message with this id is quoted."""
    return json_line({"message_id": message_id})[1:-1]


def find_quoted_ids(context_text: str) -> list[str]:
    """The ids of the messages that are quoted in ``context_text``."""
    lines = [line for line in context_text.split("\n") if line.startswith('{"message_id"')]
    return [one for line in lines for one in _ids(json.loads(line))]


def _ids(value: dict[str, Any]) -> list[str]:
    inner = value.get("quotes")
    return [value["message_id"], *(_ids(inner) if inner else [])]


def blank_quoted(context_text: str, message_id: str) -> str:
    """``context_text`` without the words of the message with this id, and without what it quoted
    and forwarded."""
    return "\n".join(
        json_line(_without(json.loads(line), message_id))
        if line.startswith("{") and has_quoted(line, message_id)
        else line
        for line in context_text.split("\n")
    )


def blank_value(value: dict[str, Any]) -> dict[str, Any]:
    """A quoted message, as it is shown once it was recalled."""
    return {key: value[key] for key in _TOLD if key in value} | {"text": RECALLED}


def _without(value: object, message_id: str) -> Any:
    if isinstance(value, list):
        return [_without(one, message_id) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("message_id") == message_id:
        return blank_value(value)
    return {key: _without(one, message_id) for key, one in value.items()}
