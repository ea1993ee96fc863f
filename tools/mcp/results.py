"""From the result of MCP's ``tools/call``, as JSON, to ours. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from tools.contract import ToolAnnotation, ToolContentItem, ToolExecutionResult
from tools.text.untrusted import clean_line, clean_untrusted

MAX_ITEMS = 100
MAX_TEXT = 2**20
"""The most characters of all text together that are kept; the registry limits how much of it the
model gets."""
_CUT = "\n…（内容过长，已截断）"

Json = Mapping[str, Any]


def convert_mcp_result(
    tool_name: str, given: Json, server_name: str, protocol: str
) -> ToolExecutionResult:
    """``given`` as a result: a failure with the server's own text where it reports an error.

    If there are only texts, they are the content or the error message. Otherwise everything is in
    the items, in order, and the content is empty, so that no text appears twice.
    """
    content = given.get("content")
    items = (
        [_item(block) for block in content[:MAX_ITEMS] if isinstance(block, Mapping)]
        if isinstance(content, list)
        else []
    )
    _bound(items)
    joined = "\n".join(
        item.text for item in items if item.content_type == "text" and item.text.strip()
    )
    is_only_text = all(item.content_type == "text" for item in items)
    is_error = given.get("isError") is True
    return ToolExecutionResult(
        tool_name,
        success=not is_error,
        content=joined if is_only_text and not is_error else "",
        error_message=(joined or "服务器没有说明原因") if is_error else "",
        structured_content=given.get("structuredContent"),
        content_items=[] if is_only_text else items,
        metadata={"server_name": server_name, "protocol_version": protocol},
    )


def _item(block: Json) -> ToolContentItem:
    make = _MAKERS.get(str(block.get("type")))
    item = make(block) if make else ToolContentItem("unknown")
    item.annotation = _annotation(block.get("annotations"))
    return item


def _text(block: Json) -> ToolContentItem:
    return ToolContentItem("text", text=_word(block, "text"))


def _media(block: Json) -> ToolContentItem:
    return ToolContentItem(
        str(block["type"]),
        data=_word(block, "data"),
        mime_type=clean_line(block.get("mimeType"), 100),
    )


def _link(block: Json) -> ToolContentItem:
    return ToolContentItem(
        "resource_link",
        uri=clean_line(block.get("uri"), 2_000),
        name=clean_line(block.get("title") or block.get("name"), 200),
        description=clean_untrusted(block.get("description"), 1_000),
        mime_type=clean_line(block.get("mimeType"), 100),
    )


def _resource(block: Json) -> ToolContentItem:
    """An embedded resource: its words, or the bytes of a picture, a sound or something else."""
    held = block.get("resource")
    resource = held if isinstance(held, Mapping) else {}
    mime, uri = clean_line(resource.get("mimeType"), 100), clean_line(resource.get("uri"), 2_000)
    if blob := _word(resource, "blob"):
        kind = mime.partition("/")[0]
        return ToolContentItem(
            kind if kind in ("image", "audio") else "binary", data=blob, mime_type=mime, uri=uri
        )
    return ToolContentItem("resource", text=_word(resource, "text"), mime_type=mime, uri=uri)


_MAKERS: dict[str, Callable[[Json], ToolContentItem]] = {
    "text": _text,
    "image": _media,
    "audio": _media,
    "resource_link": _link,
    "resource": _resource,
}


def _word(block: Json, name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""


def _annotation(given: Any) -> ToolAnnotation | None:
    if not isinstance(given, Mapping):
        return None
    audience, priority = given.get("audience"), given.get("priority")
    return ToolAnnotation(
        audience=[clean_line(one, 20) for one in audience[:4]]
        if isinstance(audience, list)
        else [],
        priority=float(priority) if isinstance(priority, int | float) else None,
    )


def _bound(items: list[ToolContentItem]) -> None:
    """Cut the text of ``items`` where all of it together becomes too long."""
    room = MAX_TEXT
    for item in items:
        if len(item.text) > room:
            item.text = item.text[:room] + _CUT
        room = max(0, room - len(item.text))
