"""A file server for tests, ordinary or hostile: it says what it is told to say, byte for byte.

It speaks raw sockets on a thread with its own event loop, so that it can lie about
lengths and types, drip, send without end, answer nothing, and see when a client hangs up.
"""

import asyncio
import contextlib
import gzip
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.environment import PATIENCE

PAUSE = 0.01
"""Seconds between the drops of :func:`drips`."""


@dataclass(frozen=True)
class Reply:
    """Raw bytes of an answer. Made by the functions below.

    ``pieces`` makes them anew for each request and may never end; ``pause`` is waited
    after each; ``is_held`` keeps the connection open when they have ended.
    """

    pieces: Callable[[], Iterable[bytes]]
    pause: float = 0
    is_held: bool = False


def sends(
    body: bytes = b"",
    content_type: str = "application/octet-stream",
    *,
    status: int = 200,
    **headers: str | None,
) -> Reply:
    """An ordinary answer; ``content_encoding="gzip"`` sets a header, None leaves one out."""
    return Reply(
        lambda: [
            head(status, {"Content-Type": content_type, "Content-Length": str(len(body))}, headers),
            body,
        ]
    )


def redirects(location: str, status: int = 302) -> Reply:
    return sends(b"see elsewhere", status=status, location=location)


def claims_length(body: bytes, length: int | str) -> Reply:
    """``body`` under a wrong ``Content-Length``, and then the end of the connection."""
    return sends(body, content_length=str(length))


def drips(body: bytes = b"", pause: float = PAUSE) -> Reply:
    """One byte at a time; ``body``, or zeros without end."""
    return Reply(lambda: _dripping(body), pause)


def sends_endlessly(piece: bytes = bytes(64 * 1024)) -> Reply:
    """A body without length and without end."""
    return Reply(lambda: _after(head(200, {"Content-Type": "image/png"}), forever(piece)))


def bombs(encoding: str = "gzip", mebibytes: int = 256) -> Reply:
    """A small body that unpacks to ``mebibytes`` of zeros."""
    return sends(packed(encoding, mebibytes), "image/png", content_encoding=encoding)


def never_answers() -> Reply:
    """The request is read, and nothing comes."""
    return Reply(tuple, is_held=True)


def hangs_up() -> Reply:
    """The connection ends without an answer."""
    return Reply(tuple)


def says_raw(*pieces: bytes, is_held: bool = False) -> Reply:
    """``pieces`` on the wire, HTTP or not."""
    return Reply(lambda: pieces, is_held=is_held)


def head(
    status: int, usual: Mapping[str, str], extra: Mapping[str, str | None] | None = None
) -> bytes:
    """The lines above a body; names in ``extra`` are written with underscores and win."""
    headers: dict[str, str | None] = dict(usual)
    headers |= {name.replace("_", "-").title(): value for name, value in (extra or {}).items()}
    lines = [
        f"HTTP/1.1 {status} Whatever",
        *(f"{name}: {value}" for name, value in headers.items() if value is not None),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def packed(encoding: str, mebibytes: int) -> bytes:
    """``mebibytes`` of zeros as ``gzip``, ``deflate`` or ``raw`` (deflate without its header)."""
    stream = zlib.compressobj(wbits={"gzip": 31, "deflate": 15, "raw": -15}[encoding])
    return b"".join([*(stream.compress(bytes(2**20)) for _ in range(mebibytes)), stream.flush()])


def forever(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece


def gzip_without_end() -> Iterator[bytes]:
    """A stream that is valid, never ends, and unpacks to nothing."""
    yield gzip.compress(b"")[:10]
    yield from forever(b"\x00\x00\x00\xff\xff" * 8_000)  # empty stored blocks


def _dripping(body: bytes) -> Iterator[bytes]:
    if body:
        yield head(200, {"Content-Length": str(len(body))})
        yield from (body[at : at + 1] for at in range(len(body)))
    else:
        yield from _after(head(200, {}), forever(b"\0"))


def _after(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""


class FileServer:
    """The server. ``url`` has no slash at its end. Every method may be called from any thread.

    ``host`` is any loopback address; ``tls`` makes it an https server.
    """

    def __init__(self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.port = 0
        self._host, self._tls = host, tls
        self._replies: dict[str, Reply] = {}
        self._connections = 0
        self._changed = threading.Condition()
        self._started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="file-server", daemon=True
        )

    def __enter__(self) -> "FileServer":
        self._thread.start()
        if not self._started.wait(10):
            raise RuntimeError("the file server did not start")
        return self

    def __exit__(self, *_exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return self.url_for(self._host)

    def url_for(self, host: str) -> str:
        """The server's address under another name."""
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def serve(self, path: str, reply: Reply) -> str:
        """Answer requests for ``path``, whatever their query, with ``reply``. Returns the URL."""
        self._replies[path] = reply
        return self.url + path

    async def wait_for_requests(self, count: int, timeout: float = PATIENCE) -> list[Request]:  # noqa: ASYNC109
        """Wait until ``count`` requests have arrived."""
        await self._wait_until(lambda: len(self.requests) >= count, f"{count} requests", timeout)
        return list(self.requests)

    async def wait_until_unused(self, timeout: float = PATIENCE) -> None:  # noqa: ASYNC109
        """Wait until no client is connected."""
        await self._wait_until(
            lambda: self._connections == 0, "the end of all connections", timeout
        )

    async def _wait_until(self, met: Callable[[], bool], what: str, seconds: float) -> None:
        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(met, seconds)

        if not await asyncio.to_thread(wait):
            raise AssertionError(
                f"{what} awaited in vain for {seconds} s; requests: {self.requests}"
            )

    # --- The server -------------------------------------------------------------

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        tasks: set[asyncio.Task[Any]] = set()
        server = await asyncio.start_server(
            lambda r, w: self._accept(r, w, tasks), self._host, 0, ssl=self._tls
        )
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stopping.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        tasks: set[asyncio.Task[Any]],
    ) -> None:
        task = asyncio.get_running_loop().create_task(self._connected(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count(+1)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(await _read(reader), reader, writer)
        finally:
            writer.transport.abort() if writer.is_closing() else writer.close()
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._changed:
            self._connections += change
            self._changed.notify_all()

    async def _answer(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        reply = self._replies.get(request.target.partition("?")[0]) or sends(
            b"nothing here", "text/plain", status=404
        )
        sending = asyncio.ensure_future(_send(reply, writer))
        leaving = asyncio.ensure_future(reader.read())
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)


class ScriptedNames:
    """A resolver: each name has the answers it was given, the last one for good. What it was not
    told is unknown."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.asked: list[str] = []
        self._answers = {name.replace("_", "."): list(lists) for name, lists in answers.items()}

    async def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]


async def _send(reply: Reply, writer: asyncio.StreamWriter) -> None:
    for piece in reply.pieces():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(reply.pause)
    if reply.is_held:
        await asyncio.Event().wait()


async def _read(reader: asyncio.StreamReader) -> Request:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _version = first.split(" ")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    return Request(
        method, target, headers, await reader.readexactly(int(headers.get("content-length", 0)))
    )
