"""Checks that what a provider returns follows the contract, before other code relies on it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tools.contract import ToolContentItem, ToolExecutionResult, ToolSpec
from tools.text.storable import make_storable

LEVELS = 100
"""Of nested objects and lists; code that walks over them goes as deep as they do."""
_RESULT: Mapping[str, type] = {
    "success": bool,
    "content": str,
    "error_message": str,
    "content_items": list,
    "post_history_messages": list,
    "metadata": dict,
}
_ITEM: Mapping[str, type] = dict.fromkeys(
    ("content_type", "text", "data", "mime_type", "uri", "name", "description"), str
)


def validate_result(result: ToolExecutionResult) -> ToolExecutionResult:
    """``result``, whose structured content is JSON or else its text, and whose messages can be
    sent.

    Raises TypeError when a field of it is of another type than the contract says.
    """
    _refuse_other(result, _RESULT)
    if result.content_items:
        result = replace(result, content_items=[_item(item) for item in result.content_items])
    if result.post_history_messages:
        result = replace(result, post_history_messages=_messages(result.post_history_messages))
    value = result.structured_content
    if value is None or isinstance(value, str) or is_json(value):
        return result
    return replace(result, structured_content=str(value))


def check_declaration(spec: ToolSpec) -> str:
    """Why ``spec`` cannot be offered to a model; "" when it can."""
    schema = spec.parameters_schema
    if schema is not None and (
        not isinstance(schema, dict) or schema.get("type", "object") != "object"
    ):
        return "the parameters are no JSON schema of an object"
    if not isinstance(spec.metadata, dict):
        return "the metadata is no object"
    if not is_json(declared := [spec.description, schema]) or make_storable(declared) != declared:
        return "the declaration is no JSON"
    return ""


def is_json(value: Any) -> bool:
    """Whether ``value`` can be written as JSON that every reader takes: no NaN, and no deeper than
    :data:`LEVELS`."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return text.count("[") + text.count("{") <= LEVELS or not _is_deep(value)


def _is_deep(value: Any) -> bool:
    """Whether ``value`` has more than :data:`LEVELS` levels."""
    level = [value]
    for _ in range(LEVELS + 1):
        level = [one for one in level if isinstance(one, dict | list | tuple)]
        if not level:
            return False
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return True


def _item(item: Any) -> ToolContentItem:
    if not isinstance(item, ToolContentItem):
        raise TypeError(f"{type(item).__name__} is no content item")
    _refuse_other(item, _ITEM)
    words = {name: getattr(item, name) for name in _ITEM}
    return item if (sound_words := make_storable(words)) == words else replace(item, **sound_words)


def _messages(given: list[Any]) -> list[dict[str, Any]]:
    if not (all(isinstance(message, dict) for message in given) and is_json(given)):
        raise TypeError("post_history_messages are no messages")
    return list(make_storable(given))


def _refuse_other(value: Any, wanted: Mapping[str, type]) -> None:
    for name, kind in wanted.items():
        if not isinstance(found := getattr(value, name), kind):
            raise TypeError(f"{name} is {type(found).__name__} and no {kind.__name__}")
