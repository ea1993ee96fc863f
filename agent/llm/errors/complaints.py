"""The words of an endpoint's answer that complain. Pure."""

import json
from collections.abc import Iterator
from typing import Any

_READ = 64 * 2**10
"""Characters of an error that are looked through; its beginning says what is wrong."""
_COMPLAINTS = ("code", "type", "status", "message", "msg", "detail")
"""Where an answer without ``error`` and ``choices`` complains; its "text" may be a transcript."""
_DEPTH = 8
"""How deep into an error's JSON is looked: an error in an error of an error is 5 deep."""


def read_complaint(status: int, body: str) -> str:
    """The words of ``body`` that complain, as lines of ``name: value``."""
    values = _json_values(body)
    if not values:
        return "" if status < 300 else body[:_READ]
    if status < 300:
        values = [part for value in values for part in _errors_of(value)]
    return "\n".join(line for value in values for line in _lines("", value, 0))[:_READ]


def _json_values(body: str) -> list[Any]:
    """The JSON of ``body``, or of the events of the stream it is."""
    whole = _json(body)
    if whole is not None:
        return [whole]
    events = (line[5:] for line in body.splitlines() if line.startswith("data:"))
    return [value for event in events if (value := _json(event)) is not None]


def _json(text: str) -> Any:
    """The JSON value of ``text``; ``None`` when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _errors_of(value: Any) -> Iterator[Any]:
    """The errors in an answer that says it succeeded, without what the model said."""
    if isinstance(value, list):
        for part in value[:10]:
            yield from _errors_of(part)
    if not isinstance(value, dict):
        return
    if value.get("error"):
        yield {"error": value["error"]}
    choices = value.get("choices")
    if not isinstance(choices, list):
        yield {name: value.get(name) for name in _COMPLAINTS}
        return
    for choice in choices:
        if isinstance(choice, dict):
            yield {name: choice.get(name) for name in ("error", "finish_reason")}


def _lines(name: str, value: Any, depth: int) -> Iterator[str]:
    """``value`` as lines of ``name: value``; of what was sent ("input") only its kind."""
    if depth > _DEPTH:
        return
    if name == "input":
        yield f"input: {'a list' if isinstance(value, list) else json.dumps(value)[:20]}"
    elif isinstance(value, dict):
        for inner, part in value.items():
            yield from _lines(str(inner), part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            yield from _lines(name, part, depth + 1)
    elif isinstance(value, str) and value[:1] in ("{", "[") and _json(value) is not None:
        yield from _lines(name, _json(value), depth + 1)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


def texts_in(value: Any) -> Iterator[str]:
    """All texts in a JSON ``value``, however deep, without the names of its entries."""
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
