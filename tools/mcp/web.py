"""The transports of servers that have a URL: streamable HTTP, and SSE as it was before.

The library speaks both; the way out is ours: each connection goes to an address that was
judged by the rules of downloads (``FETCH_ALLOW`` lists what is not public), no proxy is
read from the environment, and answers have bounds. The library follows a redirect within
the server's own origin alone, and each of its requests passes here.
"""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import httpcore2
import httpx2
from django.utils.translation import gettext as _
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tools.fetch.destinations import DestinationResolver
from tools.fetch.errors import FetchError
from tools.fetch.request import require_sendable
from tools.fetch.urls import parse_url
from tools.mcp.errors import McpClientError, PermanentFailureError
from tools.mcp.limited_streams import MAX_BODY, LimitedBody, LimitedEvents
from tools.mcp.rate_limits import ServerRateLimit
from tools.mcp.server_log import ServerLog
from tools.mcp.settings import McpServerSettings
from tools.models import McpServer

MAX_ERROR = 64 * 1024
CONNECT_SECONDS, WRITE_SECONDS = 15, 60
MOST_CONNECTIONS = 100
KEEP_SECONDS = 2.5
"""For an idle connection; servers drop theirs after five, and a request that meets that may or may
not have run."""
SESSION = "mcp-session-id"
_STREAM = "text/event-stream"
_NOT_OUT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol, FetchError)


class SendState:
    """Whether the request of one call left this machine at all."""

    def __init__(self) -> None:
        self.is_refused = False


_sending: ContextVar[SendState | None] = ContextVar("sending", default=None)


@contextmanager
def track_sending() -> Iterator[SendState]:
    """Inside the block, requests of this task report how far they came; the library passes this
    context to the task that sends."""
    current = SendState()
    token = _sending.set(current)
    try:
        yield current
    finally:
        _sending.reset(token)


def web_transport(
    settings: McpServerSettings,
    destinations: DestinationResolver,
    log: ServerLog,
    flow: ServerRateLimit,
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    """Streams to the server at the row's URL. Raises :class:`PermanentFailureError` for a row that
    cannot be used."""
    try:
        url = str(parse_url(settings.url))
        require_sendable(settings.headers)
    except FetchError as error:
        raise PermanentFailureError(str(error)) from error
    is_legacy = settings.transport == McpServer.Transport.SSE
    way_out = CheckedTransport(destinations, log, flow, is_legacy=is_legacy)
    return _legacy(url, settings, way_out) if is_legacy else _streamable(url, settings, way_out)


@asynccontextmanager
async def _streamable(
    url: str, settings: McpServerSettings, way_out: "CheckedTransport"
) -> AsyncIterator[tuple[Any, Any]]:
    async with (
        _client(way_out, settings) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_BODY) as streams,
    ):
        yield streams


def _legacy(
    url: str, settings: McpServerSettings, way_out: "CheckedTransport"
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return _client(way_out, settings)

    return sse_client(url, httpx_client_factory=client)


def _client(way_out: "CheckedTransport", settings: McpServerSettings) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=way_out,
        headers={"User-Agent": "FrostAgent", "Accept-Encoding": "identity", **settings.headers},
        # How long an answer may take is the caller's affair, who also ends it.
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS, write=WRITE_SECONDS),
        follow_redirects=False,
        trust_env=False,
    )


@cache
def _ssl_context() -> ssl.SSLContext:
    """One for all: to read the certificates of the authorities holds the loop up each time."""
    return httpcore2.default_ssl_context()


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """Requests to checked addresses; when one fails, the reason goes to ``log``.

    ``is_legacy``: answers come over another connection, so a refused message is not reported to the
    caller.
    """

    def __init__(
        self,
        destinations: DestinationResolver,
        log: ServerLog,
        flow: ServerRateLimit,
        *,
        is_legacy: bool = False,
    ) -> None:
        # The parent would make this pool without the network that dials judged addresses alone.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_ssl_context(),
            max_connections=MOST_CONNECTIONS,
            keepalive_expiry=KEEP_SECONDS,
            network_backend=_CheckedBackend(destinations),
        )
        self._log, self._flow, self._is_legacy = log, flow, is_legacy

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer, with a bounded body. Raises what the parent raises, and
        :class:`FetchError`."""
        try:
            response = await super().handle_async_request(request)
        except _NOT_OUT as error:
            if current := _sending.get():
                current.is_refused = True
            self._lost(request, error)
            raise
        except httpx2.TransportError as error:
            self._lost(request, error)
            raise
        return await self._judged(request, response)

    async def _judged(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise McpClientError(_("The server packed its answer although it was asked not to."))
        if response.status_code >= 400 and request.method == "POST":
            return await self._failed(request, response)
        content_type, _sign, _rest = response.headers.get("content-type", "").partition(";")
        if content_type.strip().lower() != _STREAM:
            return _with(response, LimitedBody(response.stream, self._flow))
        limited = _with(response, LimitedEvents(response.stream, self._flow))
        # Events are UTF-8 whatever the header says, so that what was judged is what is decoded.
        limited.headers["content-type"] = _STREAM
        return limited

    async def _failed(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """An error response, read in full: its text, not only its status, shows whether the server
        still knows the session."""
        body = b""
        stream: Any = response.stream
        async for part in stream:
            body += part
            if len(body) > MAX_ERROR:
                break
        await response.aclose()
        is_forgotten = response.status_code == 404 or (
            response.status_code == 400 and b"session" in body.lower()
        )
        if SESSION in request.headers and is_forgotten:
            if current := _sending.get():
                current.is_refused = True
            self._log.failed(_("The server no longer knows the session."))
        status = f"HTTP {response.status_code} {response.reason_phrase}".strip()
        if self._is_legacy:
            self._log.failed(status)
        elif (
            response.status_code != 404
        ):  # by which an older server says that it does not know a method
            self._log.answered(status)
        return _with(response, httpx2.ByteStream(body[:MAX_ERROR]))

    def _lost(self, request: httpx2.Request, error: Exception) -> None:
        if request.method == "POST":
            self._log.failed(str(error) or type(error).__name__)


def _with(response: httpx2.Response, stream: Any) -> httpx2.Response:
    return httpx2.Response(
        response.status_code,
        headers=response.headers.raw,
        stream=stream,
        extensions=response.extensions,
    )


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Dials the addresses of a host that may be dialled, best first, and never looks the name up
    again."""

    def __init__(self, destinations: DestinationResolver) -> None:
        self._destinations = destinations
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, *args: Any, **options: Any
    ) -> httpcore2.AsyncNetworkStream:
        *others, last = await self._destinations.permitted(host.strip("[]"))
        for address in others:
            try:
                return await self._network.connect_tcp(str(address), port, *args, **options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._network.connect_tcp(str(last), port, *args, **options)

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)
