"""The MCP server of this program: the tools that make sense without a chat, for clients of the
Model Context Protocol.

Loaded only where ``/mcp`` is switched on: importing the SDK takes half a second and
memory, so what every start loads must not import this module.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

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
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agent.api.external_calls import ExternalCalls
from agent.api.mcp_content import to_mcp_result, to_mcp_tool
from agent.domain.states import RunOrigin
from agent.record.record import Record
from tools.contract import ToolSpec
from tools.error_boundary import capture_error, log_errors
from tools.registry.registry import ToolRegistry
from tools.version import VERSION

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
