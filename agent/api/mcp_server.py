"""The MCP server of this program: the tools that make sense without a chat, for clients of the
Model Context Protocol.

Loaded only where ``/mcp`` is switched on: importing the SDK takes half a second and
memory, so what every start loads must not import this module.
"""

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent.domain.states import Claim, RunOrigin
from agent.record.record import Record
from agent.record.runs.external_calls import (
    ExternalCallKeys,
    begin_external_call,
    end_external_call,
)
from agent.record.runs.steps import NewCall
from agent.record.runs.subagent_runs import break_off_run
from agent.run.model_call import elapsed_ms
from agent.run.tool_results import NO_TEXT, PROVIDER_NAME, call_outcome, needs_approval, result_text
from tools.contract import (
    InvalidArguments,
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.error_boundary import capture_error, log_errors
from tools.registry import catalogue
from tools.registry.execution import is_json
from tools.registry.offers import SEARCH_TOOL
from tools.registry.registry import ToolRegistry, sort_for_model
from tools.schemas.arguments import check_size
from tools.text.storable import make_storable
from tools.version import VERSION

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


# Calls of tools by programs outside, with no chat and no model of ours: each decided by the
# registry, and on record.

STOPPED = gettext_noop("the caller went away, or the server stopped, before the tool had finished")
NOBODY_APPROVES = "这次调用不来自会话，没有人可以批准，请不要重试。"


class ExternalCalls:
    """Lists and calls the tools that make sense without a chat, for external callers.

    ``origin`` is the origin of their runs on record, and their platform. Callers never have owner
    rights, and count as one person in one chat. Used from one event loop.
    """

    def __init__(self, record: Record, registry: ToolRegistry, origin: RunOrigin) -> None:
        self._record = record
        self._registry = registry.narrowed(_is_for_outside)
        self._origin = origin

    async def list_tools(self) -> list[ToolSpec]:
        """What may be called now, by what the operator has set up by now; a spec is the same object
        while it is unchanged."""
        await self._record.submit(self._record.run_starter.reload_settings)
        return sort_for_model(await self._registry.list_tools(self._context().availability()))

    async def call(self, tool_name: str, arguments: Mapping[str, object]) -> ToolExecutionResult:
        """What came of a call; a refusal or failure of any kind is a failed result.

        When cancelled, the tool was cancelled with it, and the record says that its outcome
        is unknown. Raises what the database raises when the call could not be put on record.
        """
        await self._record.wait_for_room()
        await self._record.submit(self._record.run_starter.reload_settings)
        given = _given(arguments)
        new = NewCall(
            f"call_{uuid.uuid4().hex[:24]}", make_storable(tool_name), _recorded(given), ""
        )
        entry = await self._begun(new)
        invocation = ToolInvocation(tool_name, given, new.call_id, call_pk=entry.call_pk)
        started = time.monotonic()
        try:
            result = await self._made(invocation)
        except (
            Exception,
            asyncio.CancelledError,
        ):  # not handled here, but the record must show that it ended
            self._break_off(entry)
            raise
        outcome = call_outcome(
            entry.call_pk,
            result,
            result_text(new.call_id, result, can_see=False),
            elapsed_ms(started),
        )
        await self._record.submit(
            end_external_call, entry.run_pk, outcome, claim=Claim(entry.run_pk)
        )
        return result

    async def _begun(self, new: NewCall) -> ExternalCallKeys:
        begun = self._record.submit(begin_external_call, self._origin, new, self._record.process_id)
        try:
            return await asyncio.shield(begun)
        except asyncio.CancelledError:  # it may be committed all the same
            begun.add_done_callback(self._drop)
            raise

    async def _made(self, invocation: ToolInvocation) -> ToolExecutionResult:
        try:
            async with asyncio.timeout(settings.RUN_TIMEOUT):
                result = await self._registry.invoke(invocation, self._context())
        except TimeoutError:
            return catalogue.timed_out_result(invocation.tool_name, settings.RUN_TIMEOUT)
        if needs_approval(result):
            return replace(result, error_message=f"{result.error_message}{NOBODY_APPROVES}")
        return result

    def _context(self) -> ToolExecutionContext:
        return ToolExecutionContext(platform=self._origin.value, metadata={"state": {}})

    def _drop(self, begun: "asyncio.Future[ExternalCallKeys]") -> None:
        if not begun.cancelled() and begun.exception() is None:
            self._break_off(begun.result())

    def _break_off(self, entry: ExternalCallKeys) -> None:
        """Not awaited: a cancelled caller has no time for it, and a submitted request is carried
        out anyway."""
        self._record.submit(break_off_run, entry.run_pk, STOPPED)


def _is_for_outside(spec: ToolSpec) -> bool:
    """Not the timing gate's tools, and not the tool search: external callers see the whole list."""
    if spec.provider_name != PROVIDER_NAME:
        return True
    return spec.metadata.get("builtin_stage") != "timing" and spec.name != SEARCH_TOOL


def _given(arguments: Mapping[str, object]) -> Any:
    """``arguments`` for the registry; as text where they hold a number that is not JSON, which it
    then refuses in words."""
    try:
        json.dumps(arguments, allow_nan=False)
    except RecursionError:
        return dict(arguments)
    except ValueError:
        return json.dumps(arguments, ensure_ascii=False)
    return dict(arguments)


def _recorded(given: object) -> Any:
    """What the registry is given as the record can hold it."""
    try:
        check_size(given)
    except InvalidArguments as refusal:
        return str(refusal.problems[0])
    return make_storable(given)


logger = logging.getLogger(__name__)

NAME = "FrostAgent"
#: How often changes of the tools are checked while a client listens, in seconds.
LOOK_SECONDS = 1.0
#: Clients that may listen at a time.
LISTENERS = 64

ServerContext = ServerRequestContext[Any, Any]


class ToolServer:
    """The tools of ``registry`` behind the SDK's server; its calls are on record as runs of the
    origin ``mcp``."""

    def __init__(self, record: Record, registry: ToolRegistry) -> None:
        self._calls = ExternalCalls(record, registry, RunOrigin.MCP)
        self._watch = ToolWatch(self._calls.list_tools)
        self._listeners = ListenHandler(self._watch, max_subscriptions=LISTENERS)
        self._server = Server(
            NAME,
            version=VERSION,
            # Our tools ask for no headers of their own; without this the SDK lists all tools for
            # each call, to look.
            get_tool_input_schema=lambda name: None,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listeners,
        )

    def sessions(self) -> StreamableHTTPSessionManager:
        """What answers requests, each for itself: no session, no memory of who asked. To be run
        once."""
        return StreamableHTTPSessionManager(self._server, stateless=True)

    def hang_up(self) -> None:
        """End the streams of all listeners; each gets a last event."""
        self._listeners.close()

    async def _list(
        self, context: ServerContext, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        with capture_error() as attempt:
            specs = await self._calls.list_tools()
            return ListToolsResult(
                tools=[to_mcp_tool(spec, any_value=_takes_any_value(context)) for spec in specs]
            )
        raise _to_mcp_error("The tools could not be listed for an MCP client", attempt.error)

    async def _call(self, context: ServerContext, params: CallToolRequestParams) -> CallToolResult:
        with capture_error() as attempt:
            result = await self._calls.call(params.name, params.arguments or {})
            return to_mcp_result(result, any_value=_takes_any_value(context))
        raise _to_mcp_error("A tool could not be called for an MCP client", attempt.error)


class ToolWatch:
    """Notifies listeners when the callable tools have changed. Checks only while there is a
    listener."""

    def __init__(self, tools: Callable[[], Awaitable[Sequence[ToolSpec]]]) -> None:
        self._tools = tools
        self._bus = InMemorySubscriptionBus()
        self._listening = 0
        self._looking: asyncio.Task[None] | None = None

    async def publish(self, event: ServerEvent) -> None:
        await self._bus.publish(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Notify ``listener`` from now on; returns a function that ends that, which may be called
        twice."""
        leave = contextlib.ExitStack()
        leave.callback(self._bus.subscribe(listener))
        leave.callback(self._one_less)
        self._listening += 1
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look(), name="mcp-tools")
        return leave.close

    def _one_less(self) -> None:
        self._listening -= 1
        if not self._listening and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        known: Sequence[ToolSpec] | None = None
        while True:
            with log_errors(logger, "It could not be looked whether the tools have changed"):
                tools = await self._tools()
                # a spec is the same object while it is unchanged
                if known is not None and list(map(id, known)) != list(map(id, tools)):
                    await self.publish(ToolsListChanged())
                known = tools
            await asyncio.sleep(LOOK_SECONDS)


def _takes_any_value(context: ServerContext) -> bool:
    """Whether structured results may be other than objects in the caller's revision of the
    protocol."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _to_mcp_error(what: str, error: Exception | None) -> MCPError:
    """The error for the caller, without internal details; the log has them."""
    logger.error(what, exc_info=error)
    return MCPError(INTERNAL_ERROR, "the server is at fault; its log says why")
