"""What a plugin's tool returned, as a result. Pure. The rules are MaiBot's."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from tools.contract import ToolContentItem, ToolExecutionResult
from tools.plugin_sdk.calls import RpcError

ITEMS = 50
"""Content items of one result that are taken."""
KINDS = frozenset({"text", "image", "audio", "resource_link", "resource", "binary", "unknown"})
_ALIASES = {
    "picture": "image",
    "img": "image",
    "voice": "audio",
    "file": "binary",
    "link": "resource_link",
}


def convert_plugin_result(plugin_id: str, tool_name: str, value: Any) -> ToolExecutionResult:
    """The result that ``value`` stands for.

    An object reports its own success, with ``success``, ``content`` or ``message``, ``error`` and
    ``content_items``; so does a pair of a bool and a text. None is a success without text, and
    everything else a success with its text. A successful object with ``stop_after_execution`` ends
    the run.
    """
    metadata: dict[str, Any] = {"plugin_id": plugin_id}
    match value:
        case None:
            return ToolExecutionResult(tool_name, success=True, metadata=metadata)
        case dict():
            return _of_object(tool_name, value, metadata)
        case [bool(success), message]:
            return _said(tool_name, success, _text(message), metadata)
        case _:
            return ToolExecutionResult(
                tool_name, success=True, content=str(value), metadata=metadata
            )


def convert_plugin_error(plugin_id: str, tool_name: str, error: RpcError) -> ToolExecutionResult:
    """The failure of a call that has no value: the tool raised something, or the plugin is not
    there."""
    return _said(
        tool_name, False, str(error), {"plugin_id": plugin_id, "error_code": str(error.code)}
    )


def _said(
    tool_name: str, success: bool, message: str, metadata: dict[str, Any]
) -> ToolExecutionResult:
    if success:
        return ToolExecutionResult(tool_name, success=True, content=message, metadata=metadata)
    return ToolExecutionResult(
        tool_name,
        success=False,
        error_message=message or f"插件工具 {tool_name} 执行失败",
        metadata=metadata,
    )


def _of_object(
    tool_name: str, value: dict[str, Any], metadata: dict[str, Any]
) -> ToolExecutionResult:
    if bool(value.get("success", True)):
        result = _said(
            tool_name, True, _text(value.get("content")) or _text(value.get("message")), metadata
        )
        if value.get("stop_after_execution") is True:
            result.metadata["pause_execution"] = True
    else:  # its message is the error: content would be all that the model reads
        result = _said(
            tool_name, False, _text(value.get("error")) or _text(value.get("message")), metadata
        )
        result.content = _text(value.get("content"))
    items = value.get("content_items")
    result.content_items = (
        [_item(item) for item in items[:ITEMS] if isinstance(item, Mapping)]
        if isinstance(items, list)
        else []
    )
    result.structured_content = value if _is_json(value) else str(value)
    return result


def _item(given: Mapping[str, Any]) -> ToolContentItem:
    """The item that ``given`` describes, under any of the names that plugins use."""
    said = str(given.get("content_type") or given.get("type") or "").lower()
    kind = _ALIASES.get(said, said)
    data, mime = _data(given)
    return ToolContentItem(
        content_type=kind if kind in KINDS else "unknown",
        text=_text(given.get("text")),
        data=data,
        mime_type=_text(given.get("mime_type") or given.get("mimeType")) or mime,
        uri=_text(given.get("uri") or given.get("url")),
        name=_text(given.get("name")),
        description=_text(given.get("description")),
        metadata={} if kind in KINDS else {"content_type": said},
    )


def _data(given: Mapping[str, Any]) -> tuple[str, str]:
    """The Base64 of an item, and its type where a ``data:`` address says it."""
    data = next(
        (
            given[name]
            for name in ("data", "base64", "binary_data_base64", "image_base64")
            if given.get(name)
        ),
        "",
    )
    if isinstance(data, bytes):
        return base64.b64encode(data).decode(), ""
    text = _text(data)
    if text.startswith("data:") and ";base64," in text[:200]:
        head, _, rest = text.partition(";base64,")
        return rest, head.removeprefix("data:")
    return text, ""


def _is_json(value: Any) -> bool:
    """Whether a column of JSON can hold ``value``; a float that is no number, which msgpack can
    hold, it cannot."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _text(value: Any) -> str:
    return "" if value is None else str(value)
