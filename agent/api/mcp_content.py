"""Our tools and their results in the words of the Model Context Protocol. Pure.

Loaded only where ``/mcp`` is switched on, as :mod:`agent.api.mcp_server` is.
"""

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
from tools.contract import ToolContentItem, ToolExecutionResult, ToolSpec
from tools.registry.result_validation import is_json
from tools.text.storable import make_storable

NO_PARAMETERS = {"type": "object", "properties": {}}


def to_mcp_tool(spec: ToolSpec, *, any_value: bool) -> Tool:
    """A tool's declaration. Structured results other than objects are declared where the caller's
    protocol has ``any_value``."""
    schema, annotation, hints = spec.output_schema, spec.annotation, None
    if (
        not isinstance(schema, dict)
        or not is_json(schema)
        or (not any_value and schema.get("type") != "object")
    ):
        schema = None
    if annotation:
        hints = ToolAnnotations(
            title=annotation.title or None,
            read_only_hint=annotation.read_only,
            destructive_hint=annotation.destructive,
            idempotent_hint=annotation.idempotent,
            open_world_hint=annotation.open_world,
        )
    return Tool(
        name=spec.name,
        title=spec.title or None,
        description=spec.description or None,
        input_schema={**NO_PARAMETERS, **(spec.parameters_schema or {}), "type": "object"},
        output_schema=schema,
        annotations=hints,
    )


def to_mcp_result(result: ToolExecutionResult, *, any_value: bool) -> CallToolResult:
    """The result of a call: the text, then the items that it leaves out. There is always something
    to read, for models whose programs show them nothing else."""
    value, text = result.structured_content, make_storable(_text(result))
    content: list[ContentBlock] = [TextContent(text=text)] if text else []
    content += [
        _block(item)
        for item in result.content_items
        if item.content_type != "text" or item.text.strip() not in text
    ]
    return CallToolResult(
        content=content or [TextContent(text=NO_TEXT[result.success])],
        structured_content=make_storable(value) if any_value or isinstance(value, dict) else None,
        is_error=not result.success,
    )


def _text(result: ToolExecutionResult) -> str:
    """The text apart from the items: a failure's reason, or the result's own text if it has one."""
    if not result.success and result.error_message.strip():
        return result.error_message.strip()
    return result.content.strip() if result.content_items else result.get_history_content()


def _block(item: ToolContentItem) -> ContentBlock:
    """One item; what cannot be passed on is described in words."""
    kind = item.mime_type or None
    match item.content_type:
        case "text":
            return TextContent(text=item.text)
        case "image" if item.data and item.mime_type:
            return ImageContent(data=item.data, mime_type=item.mime_type)
        case "audio" if item.data and item.mime_type:
            return AudioContent(data=item.data, mime_type=item.mime_type)
        case "resource_link" if item.uri:
            name, words = item.name or item.uri, item.description or None
            return ResourceLink(uri=item.uri, name=name, description=words, mime_type=kind)
        case "resource" if item.uri and item.text:
            text = TextResourceContents(uri=item.uri, mime_type=kind, text=item.text)
            return EmbeddedResource(resource=text)
        case "resource" if item.uri and item.data:
            blob = BlobResourceContents(uri=item.uri, mime_type=kind, blob=item.data)
            return EmbeddedResource(resource=blob)
        case _:
            return TextContent(text=item.history_text())
