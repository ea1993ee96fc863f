"""The transport of servers that are programs: one JSON message a line, over pipes.

The library's own reads a line into memory however long it is, and writes a traceback to
the log for each that is no message; so the pipes are ours, and the session is the
library's. https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio
"""

import asyncio
import contextlib
import json
import re
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from django.utils.translation import gettext as _
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from tools.mcp.errors import McpClientError
from tools.mcp.json_limits import TOO_MANY_VALUES, has_too_many_values
from tools.mcp.rate_limits import ServerRateLimit
from tools.mcp.server_log import ServerLog
from tools.mcp.settings import McpServerSettings
from tools.processes.child import Child
from tools.processes.process_reaper import keeper_command

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


async def _shielded(work: Any) -> None:
    """Do ``work`` to its end, cancelled or not."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise
