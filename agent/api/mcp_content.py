"""Our tools and their results in the words of the Model Context Protocol. Pure.

Loaded only where ``/mcp`` is switched on, as :mod:`agent.api.mcp_server` is.
"""

from collections.abc import Iterator
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from agent.run.tool_results import NO_TEXT
from tools.contract import ToolAnnotation, ToolContentItem, ToolExecutionResult, ToolSpec
from tools.registry.result_validation import is_json
from tools.text.storable import make_storable

NO_PARAMETERS = {"type": "object", "properties": {}}


def to_mcp_tool(spec: ToolSpec, *, any_value: bool) -> Tool:
    """A tool's declaration. Structured results other than objects are declared where the caller's
    protocol has ``any_value``."""
    return Tool(
        name=spec.name,
        title=spec.title or None,
        description=spec.description or None,
        input_schema={**NO_PARAMETERS, **(spec.parameters_schema or {}), "type": "object"},
        output_schema=_output_schema(spec, any_value=any_value),
        annotations=_hints(spec.annotation) if spec.annotation else None,
    )


def _output_schema(spec: ToolSpec, *, any_value: bool) -> dict[str, Any] | None:
    schema = spec.output_schema
    if not isinstance(schema, dict) or not is_json(schema):
        return None
    return schema if any_value or schema.get("type") == "object" else None


def _hints(annotation: ToolAnnotation) -> ToolAnnotations:
    return ToolAnnotations(
        title=annotation.title or None,
        read_only_hint=annotation.read_only,
        destructive_hint=annotation.destructive,
        idempotent_hint=annotation.idempotent,
        open_world_hint=annotation.open_world,
    )


def to_mcp_result(result: ToolExecutionResult, *, any_value: bool) -> CallToolResult:
    """What came of a call. There is always something to read, for models whose programs show them
    nothing else."""
    value = result.structured_content
    return CallToolResult(
        content=list(_blocks(result)) or [TextContent(text=NO_TEXT[result.success])],
        structured_content=make_storable(value) if any_value or isinstance(value, dict) else None,
        is_error=not result.success,
    )


def _blocks(result: ToolExecutionResult) -> Iterator[ContentBlock]:
    """The text and then the items that it leaves out; one that cannot be passed on stands there in
    words."""
    text = make_storable(_text(result))
    if text:
        yield TextContent(text=text)
    for item in result.content_items:
        if item.content_type == "text" and item.text.strip() in text:
            continue
        yield _block(item)


def _text(result: ToolExecutionResult) -> str:
    """What is said beside the items: a failure's reason, or the result's words where it has some of
    its own."""
    if not result.success and result.error_message.strip():
        return result.error_message.strip()
    return result.content.strip() if result.content_items else result.get_history_content()


def _block(item: ToolContentItem) -> ContentBlock:
    match item.content_type:
        case "text":
            return TextContent(text=item.text)
        case "image" if item.data and item.mime_type:
            return ImageContent(data=item.data, mime_type=item.mime_type)
        case "audio" if item.data and item.mime_type:
            return AudioContent(data=item.data, mime_type=item.mime_type)
        case "resource_link" if item.uri:
            kind, words = item.mime_type or None, item.description or None
            return ResourceLink(
                uri=item.uri, name=item.name or item.uri, description=words, mime_type=kind
            )
        case "resource" if item.uri and (item.text or item.data):
            return EmbeddedResource(resource=_contents(item))
        case _:
            return TextContent(text=item.history_text())


def _contents(item: ToolContentItem) -> TextResourceContents | BlobResourceContents:
    kind = item.mime_type or None
    if item.text:
        return TextResourceContents(uri=item.uri, mime_type=kind, text=item.text)
    return BlobResourceContents(uri=item.uri, mime_type=kind, blob=item.data)
