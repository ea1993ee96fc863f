"""The transports: of servers that are programs, and of servers that have a URL.

Of programs: one JSON message a line, over pipes.

The library's own reads a line into memory however long it is, and writes a traceback to
the log for each that is no message; so the pipes are ours, and the session is the
library's. https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio

Of servers that have a URL: streamable HTTP, and SSE as it was before.

The library speaks both; the way out is ours: each connection goes to an address that was
judged by the rules of downloads (``FETCH_ALLOW`` lists what is not public), no proxy is
read from the environment, and answers have bounds. The library follows a redirect within
the server's own origin alone, and each of its requests passes here.
"""

import asyncio
import contextlib
import json
import re
import signal
import ssl
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

import anyio
import httpcore2
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from django.utils.translation import gettext as _
from mcp.client.sse import sse_client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from tools.fetch.request import DestinationResolver, FetchError, parse_url, require_sendable
from tools.mcp.limited_streams import (
    MAX_BODY,
    TOO_MANY_VALUES,
    LimitedBody,
    LimitedEvents,
    has_too_many_values,
)
from tools.mcp.rate_limits import ServerRateLimit
from tools.mcp.server_log import ServerLog
from tools.mcp.settings import McpServerSettings
from tools.mcp.specs import McpClientError, PermanentFailureError
from tools.models import McpServer
from tools.processes.child import Child
from tools.processes.process_reaper import keeper_command
from tools.version import USER_AGENT

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
) -> AsyncIterator[tuple[object, object]]:
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
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **settings.headers},
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


def _with(response: httpx2.Response, stream: httpx2.AsyncByteStream) -> httpx2.Response:
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


MAX_MESSAGE = 8 * 2**20
"""Bytes of one line."""
LONGEST_WORDS = 16 * 1024
"""Bytes of one line on stderr."""
CHUNK = 256 * 1024
WAITING = 16
"""Messages between a pipe and the session."""
EXIT_SECONDS = 1.0
"""The time for a server to exit after its input was closed."""
LAST_WORDS_SECONDS = 0.2
"""For what a program that has ended left in its pipes."""
END_SECONDS = 3.5
"""For the keeper to end it, which takes its grace and a moment."""
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')
_SEARCHED = 300
"""Bytes at either end of a line that are searched for the number of a broken answer."""

TOO_LARGE, UNREADABLE = "larger than a message may be", "no message of JSON-RPC"
"""What stands for an answer that could not be passed on, as the data of an error."""
P = TypeVar("P")
Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def stdio_transport(
    settings: McpServerSettings, flow: ServerRateLimit, log: ServerLog
) -> AsyncIterator[Streams]:
    """Start the program and exchange messages with it; after the block, however it is left, the
    program and all its children have ended.

    Raises :class:`McpClientError` when it cannot be started.
    """
    child = Child(process := await _started(settings))
    incoming, read = anyio.create_memory_object_stream[Incoming](WAITING)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](WAITING)
    tasks = [
        asyncio.create_task(_read(child, incoming, flow, log), name="mcp-stdout"),
        asyncio.create_task(_write(process, outgoing), name="mcp-stdin"),
        asyncio.create_task(_heed(process, flow, log), name="mcp-stderr"),
    ]
    try:
        yield read, write
    finally:
        for stream in (incoming, read, write, outgoing):
            stream.close()
        await _shielded(_ended(child, tasks, log))


async def _started(settings: McpServerSettings) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *keeper_command(settings.command, *settings.arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | dict(settings.environment),
            cwd="/",
            limit=CHUNK,
        )
    except (OSError, ValueError) as error:
        raise McpClientError(_("The program cannot be started: %s") % error) from error


async def _read(
    child: Child,
    incoming: MemoryObjectSendStream[Incoming],
    flow: ServerRateLimit,
    log: ServerLog,
) -> None:
    """Pass on messages until the pipe ends; then notify the session of the end."""
    stdout, lines = _pipe(child.process.stdout), LineSplitter()
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        async with incoming:
            while chunk := await stdout.read(CHUNK):
                child.find_program()  # it runs now
                await flow.heard(len(chunk))
                for line in lines.split(chunk):
                    if (message := _message(line, log)) is not None:
                        await incoming.send(message)
                    else:
                        await flow.strayed()


async def _write(process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    stdin = _pipe(process.stdin)
    with contextlib.suppress(OSError, anyio.ClosedResourceError):
        async with outgoing:
            async for said in outgoing:
                stdin.write(
                    said.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                )
                await stdin.drain()


async def _heed(process: Process, flow: ServerRateLimit, log: ServerLog) -> None:
    """Log what the server prints to stderr."""
    stderr, lines = _pipe(process.stderr), LineSplitter(limit=LONGEST_WORDS)
    with contextlib.suppress(ConnectionError):
        while chunk := await stderr.read(CHUNK):
            await flow.heard(len(chunk))
            for line in lines.split(chunk):
                log.log_output(line.decode(errors="replace"))


def _pipe(pipe: P | None) -> P:
    if pipe is None:
        raise McpClientError("no pipes")
    return pipe


def _message(line: bytes, log: ServerLog) -> SessionMessage | None:
    """The message that ``line`` is, an error for the call that a broken one answers, or None."""
    if not line.strip():
        return None
    if line.lstrip()[:1] != b"{":
        log.noted(f"a line of its output is no message: {line[:200].decode(errors='replace')}")
        return None
    if isinstance(line, TruncatedLine):
        problem = TOO_LARGE
    elif has_too_many_values(line):
        problem = TOO_MANY_VALUES
    else:
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            problem = UNREADABLE
    log.noted(f"{problem}: {line[:200].decode(errors='replace')}")
    number = _ID.search(line[:_SEARCHED]) or _ID.search(line[-_SEARCHED:])
    if number is None or b'"method"' in line[:_SEARCHED]:
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=problem, data=problem)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=json.loads(number[1]), error=error))


class TruncatedLine(bytes):
    """Both ends of a line that was too long."""


class LineSplitter:
    """Bytes into lines. Of one that is longer than ``limit`` only its ends are kept, as a
    :class:`TruncatedLine`."""

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""

    def split(self, chunk: bytes) -> list[bytes]:
        """The lines that end in ``chunk``."""
        *ended, rest = chunk.split(b"\n")
        lines = []
        for piece in ended:
            self._add(piece)
            whole = b"".join(self._parts)
            lines.append(TruncatedLine(self._head + b" " + whole) if self._head else whole)
            self._parts, self._size, self._head = [], 0, b""
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            whole = b"".join(self._parts)
            self._head = self._head or whole[:_SEARCHED]
            self._parts = [whole[-_SEARCHED:]]
            self._size = self._limit


async def _ended(child: Child, tasks: list[asyncio.Task[None]], log: ServerLog) -> None:
    """End the program: close its input, then let the process reaper end it, then kill what is
    left."""
    process = child.process
    if process.stdin is not None:
        process.stdin.close()
    draining = asyncio.create_task(_drained(process, tasks[0]), name="mcp-drain")
    if await child.ends_within(EXIT_SECONDS):
        if child.status:
            log.failed(_("The program ended with status %s.") % child.status)
    else:
        child.signal(signal.SIGTERM)
        if not await child.ends_within(END_SECONDS):
            await child.kill()
            await child.ends_within(EXIT_SECONDS)
    await child.end_orphans()
    await asyncio.wait(tasks, timeout=LAST_WORDS_SECONDS)
    for task in (*tasks, draining):
        task.cancel()
    await asyncio.wait([*tasks, draining])
    transport: Any = getattr(process, "_transport", None)
    if (
        transport is not None
    ):  # else a grandchild with our pipe keeps it open, and it is reported at its collection
        transport.close()


async def _drained(process: Process, reader: asyncio.Task[None]) -> None:
    """Discard the remaining output of the program: it could not end while it waits for a reader."""
    await asyncio.wait([reader])
    with contextlib.suppress(ConnectionError):
        while await _pipe(process.stdout).read(CHUNK):
            pass


async def _shielded(work: Awaitable[object]) -> None:
    """Do ``work`` to its end, cancelled or not."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise
