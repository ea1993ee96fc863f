"""``/mcp``: the tools for clients of the Model Context Protocol, over streamable HTTP.

Served only when ``MCP_SERVER_TOKEN`` is set. Plain ASGI, like :mod:`frostproject.web.http`; access
is checked here, and the SDK handles the requests.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from django.conf import settings

from frostproject.web.http import (
    HttpRefusal,
    Receive,
    Send,
    read_body,
    refuse_unknown_host,
    refuse_wrong_bearer,
    send_json,
)
from onebot.connections.handshake import Handshake, origin_refusal
from onebot.gateway.gateway import Gateway
from tools.error_boundary import log_errors

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

logger = logging.getLogger(__name__)


#: What a refusal of that status has to say in its head.
REFUSAL_HEADERS = {401: (b"www-authenticate", b"Bearer"), 405: (b"allow", b"POST")}


class McpEndpoint:
    """The ASGI application behind ``/mcp``.

    daphne has no lifespan events, so the first request starts the SDK in a task of its own, which
    also ends it: a task group must be left by the task that entered it.
    """

    def __init__(self, gateway: Gateway) -> None:
        from agent.api.mcp_server import ToolServer  # takes half a second

        self._gateway = gateway
        self._tools = ToolServer(gateway.runtime.record, gateway.runtime.registry)
        self._sessions: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._life: asyncio.Task[None] | None = None
        self._is_open = True
        self._end = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        try:
            self._admit(scope)
            body = await read_body(receive)
            sessions = await self._serving()
        except HttpRefusal as refusal:
            headers = [REFUSAL_HEADERS[refusal.status]] if refusal.status in REFUSAL_HEADERS else []
            await send_json(send, refusal.status, {"error": str(refusal)}, *headers)
        else:
            await sessions.handle_request(scope, _replayed(body, receive), send)

    def hang_up(self) -> None:
        """Begin nothing more, and end the streams that would never end of themselves."""
        self._is_open = False
        self._tools.hang_up()

    async def close(self) -> None:
        """Cancel the requests that are still being answered; they are recorded as cancelled."""
        self.hang_up()
        self._end.set()
        if self._life is not None:
            await asyncio.wait([self._life])

    def _admit(self, scope: dict[str, Any]) -> None:
        """Refuse strangers, foreign pages in browsers, and all but POST: there are no sessions to
        follow or to end."""
        request = Handshake.from_scope(scope)
        refuse_unknown_host(request)
        refuse_wrong_bearer(request, settings.MCP_SERVER_TOKEN)
        if refusal := origin_refusal(request, self._gateway.admission):
            raise HttpRefusal(403, refusal)
        if scope["method"] != "POST":
            raise HttpRefusal(405, "use POST")
        if not self._is_open:
            raise HttpRefusal(503, "the server stops")

    async def _serving(self) -> "StreamableHTTPSessionManager":
        """The running server; created again if it stopped unexpectedly."""
        self._gateway.ensure_started()
        if self._sessions is None or self._life is None or self._life.done():
            loop = asyncio.get_running_loop()
            self._sessions = loop.create_future()
            self._life = loop.create_task(self._live(self._sessions), name="mcp")
        return await asyncio.shield(self._sessions)

    async def _live(self, started: "asyncio.Future[StreamableHTTPSessionManager]") -> None:
        with log_errors(logger, "The MCP server has failed; the next request starts it anew"):
            sessions = self._tools.sessions()
            async with sessions.run():
                started.set_result(sessions)
                await self._end.wait()


def _replayed(body: bytes, receive: Receive) -> Receive:
    """``receive`` of a request whose whole body was read before: what follows it can only be its
    end."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> dict[str, Any]:
        return waiting.pop() if waiting else await receive()

    return next_message
