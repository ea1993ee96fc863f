"""One end of the pipes between the server and a plugin's process. Both ends are the same."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgpack

from tools.error_boundary import LogLimit, capture_error, contain
from tools.plugin_sdk.calls import RpcError, RpcErrorCode

logger = logging.getLogger(__name__)


# The frames between the server and a plugin's process, as bytes. Pure.
#
# A frame is the length of the rest in four bytes, big-endian, and a msgpack map. The format and the
# largest size are MaiBot's.

MOST_BYTES = 16 * 1024 * 1024
"""Of a frame, without its head."""
HEAD = 4
LARGE, MOST_CONTAINERS, MOST_ITEMS = 64 * 1024, 200_000, 1_000_000
"""A body of more bytes than the first may have so many objects and lists, and each list so many
items: one byte of msgpack can stand for 64 of memory."""
METHOD_CHARS, MESSAGE_CHARS = 64, 20_000


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A request, answered under ``number``; a notice has no number and gets no answer."""

    number: int | None
    method: str
    payload: object


@dataclass(frozen=True, slots=True)
class RpcResponse:
    """What came of a request: its value, or the error instead of it."""

    number: int
    payload: object
    error: RpcError | None


@dataclass(frozen=True, slots=True)
class RpcCancellation:
    """The request with that number was cancelled: no answer is expected."""

    number: int


Envelope = RpcRequest | RpcResponse | RpcCancellation
UNREADABLE = (ValueError, TypeError, RecursionError, MemoryError, msgpack.UnpackException)


def encode_request(number: int | None, method: str, payload: object) -> bytes:
    """Raises :class:`RpcError` E_BAD_PAYLOAD for what no frame holds; so do the other two."""
    return _frame({"type": "request", "id": number, "method": method, "payload": payload})


def encode_response(number: int, payload: object, error: RpcError | None = None) -> bytes:
    if error is None:
        return _frame({"type": "response", "id": number, "payload": payload})
    told = {"code": str(error.code), "message": error.message[:MESSAGE_CHARS]}
    return _frame({"type": "response", "id": number, "error": told})


def encode_cancellation(number: int) -> bytes:
    return _frame({"type": "withdrawal", "id": number})


def body_length(head: bytes) -> int:
    """How many bytes follow ``head``; raises :class:`RpcError` when they would be too many."""
    if (length := int.from_bytes(head, "big")) > MOST_BYTES:
        raise RpcError(
            RpcErrorCode.BAD_PAYLOAD,
            f"a frame of {length} bytes was announced; {MOST_BYTES} are the most",
        )
    return length


def parse_frame(body: bytes) -> Envelope:
    """The envelope in the frame's ``body``; raises :class:`RpcError` E_PROTOCOL_MISMATCH for
    anything else."""
    try:
        found = _unpacked(body)
    except UNREADABLE as error:
        raise _mismatch(f"no msgpack: {type(error).__name__} {error}"[:200]) from error
    match found:
        case {
            "type": "request",
            "id": int() | None as number,
            "method": str(method),
            "payload": payload,
        }:
            if len(method) <= METHOD_CHARS and not isinstance(number, bool):
                return RpcRequest(number, method, payload)
        case {"type": "response", "id": int(number), "payload": payload}:
            return RpcResponse(number, payload, None)
        case {
            "type": "response",
            "id": int(number),
            "error": {"code": str(code), "message": str(message)},
        }:
            return RpcResponse(number, None, RpcError(code[:METHOD_CHARS], message[:MESSAGE_CHARS]))
        case {"type": "withdrawal", "id": int(number)}:
            return RpcCancellation(number)
    raise _mismatch("no envelope")


def _frame(envelope: dict[str, object]) -> bytes:
    try:
        body: bytes = msgpack.packb(envelope, unicode_errors="replace")
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise RpcError(
            RpcErrorCode.BAD_PAYLOAD,
            f"the payload cannot be sent: {type(error).__name__} {error}"[:200],
        ) from error
    if len(body) > MOST_BYTES:
        raise RpcError(
            RpcErrorCode.BAD_PAYLOAD,
            f"the payload has {len(body)} bytes; {MOST_BYTES} are the most",
        )
    if len(body) > LARGE:
        # What the other side would not take is an error of this payload, and not the end of the
        # connection.
        try:
            _unpacked(body)
        except UNREADABLE as error:
            raise RpcError(
                RpcErrorCode.BAD_PAYLOAD, f"the payload cannot be sent: {error}"[:200]
            ) from error
    return len(body).to_bytes(HEAD, "big") + body


def _unpacked(body: bytes) -> object:
    if len(body) <= LARGE:
        return msgpack.unpackb(body, unicode_errors="replace", strict_map_key=True)
    left = MOST_CONTAINERS

    def count(container: object) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"more than {MOST_CONTAINERS} objects and lists")
        return container

    return msgpack.unpackb(
        body,
        unicode_errors="replace",
        strict_map_key=True,
        max_array_len=MOST_ITEMS,
        list_hook=count,
        object_hook=count,
    )


def _mismatch(text: str) -> RpcError:
    return RpcError(RpcErrorCode.PROTOCOL_MISMATCH, text)


LogLimit(logger, named=1)

RequestHandler = Callable[[str, object], Awaitable[object]]
"""Answers a request: method and payload to payload. It also handles notices, whose answer is
dropped."""

AT_ONCE = 256
"""Requests that wait for an answer, in each direction. What is above is refused."""
UNSENT_BYTES = 32 * 1024 * 1024
"""That wait for the other side to read; then it is E_BACK_PRESSURE."""
TURN = 32
"""The most frames that are read in a row before other tasks may run."""


class RpcPeer:
    """Sends requests to the other side, and answers its requests, while :meth:`run` is running.

    ``handle`` answers in a task for each request, which is cancelled when the other side withdraws
    it; an :class:`RpcError` that it raises is the answer, any other exception is
    E_CAPABILITY_FAILED with its text. Notices are handled one after another, in order, and nothing
    else is read meanwhile: handling one must never wait for this peer.

    All methods belong to the event loop's thread.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: RequestHandler
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handle = handle
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._working: dict[int, asyncio.Task[None]] = {}
        self._ended: RpcError | None = None

    @property
    def is_open(self) -> bool:
        return self._ended is None

    async def run(self) -> RpcError:
        """Serve until either side closes, and return the reason. Afterwards no call waits and no
        handler runs.

        A frame that is too large or not an envelope also ends it: it is unknown what else was lost
        with it. When cancelled, the peer is closed.
        """
        try:
            await self._read()
        except asyncio.IncompleteReadError as error:
            text = (
                "the process has ended"
                if not error.partial
                else "the process has ended within a frame"
            )
            self._end(RpcError(RpcErrorCode.PLUGIN_CRASHED, text))
        except OSError as error:
            self._end(RpcError(RpcErrorCode.PLUGIN_CRASHED, f"the pipe is broken: {error}"))
        except RpcError as error:
            self._end(error)
        finally:
            self.close()
        return self._ended or RpcError(RpcErrorCode.SHUTTING_DOWN, "closed")

    def close(self) -> None:
        """End immediately: waiting calls get E_SHUTTING_DOWN, running handlers are cancelled. May
        be called again."""
        self._end(RpcError(RpcErrorCode.SHUTTING_DOWN, "the connection was closed"))

    async def request(self, method: str, payload: object, seconds: float | None = None) -> Any:
        """The other side's answer. Raises :class:`RpcError` for an error, and after ``seconds``
        E_TIMEOUT.

        After a timeout or when cancelled, the other side is asked to stop working on it, and the
        peer stays usable.
        """
        if len(self._waiting) >= AT_ONCE:
            raise RpcError(RpcErrorCode.BACK_PRESSURE, f"{AT_ONCE} requests wait already")
        number = next(self._numbers)
        self._send(encode_request(number, method, payload))
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise RpcError(
                RpcErrorCode.TIMEOUT, f"no answer to {method} within {seconds:g} s"
            ) from None
        finally:
            del self._waiting[number]
            if answer.cancelled() and self.is_open:
                self._writer.write(encode_cancellation(number))

    def notify(self, method: str, payload: object) -> None:
        """Send a notice to the other side. Raises :class:`RpcError` when it cannot be sent."""
        self._send(encode_request(None, method, payload))

    def _send(self, frame: bytes) -> None:
        if self._ended is not None:
            raise RpcError(self._ended.code, self._ended.message)
        unsent = self._writer.transport.get_write_buffer_size()
        if unsent and unsent + len(frame) > UNSENT_BYTES:
            raise RpcError(RpcErrorCode.BACK_PRESSURE, "the other side does not read")
        self._writer.write(frame)

    async def _read(self) -> None:
        for turn in count(1):
            if not self.is_open:
                return
            head = await self._reader.readexactly(HEAD)
            await self._take(parse_frame(await self._reader.readexactly(body_length(head))))
            if turn % TURN == 0:
                await asyncio.sleep(0)

    async def _take(self, envelope: Envelope) -> None:
        match envelope:
            case RpcRequest(None, method, payload):
                with capture_error() as attempt:
                    await contain(self._handle(method, payload))
                if attempt.error is not None:
                    logger.warning("the notice %s was not taken: %r", method, attempt.error)
            case RpcRequest(int(number), method, payload):
                self._accept(number, method, payload)
            case RpcResponse(number, payload, error):
                answer = self._waiting.get(number)
                if answer is None or answer.done():
                    return  # it was cancelled
                if error is None:
                    answer.set_result(payload)
                else:
                    answer.set_exception(error)
            case RpcCancellation(number) if task := self._working.get(number):
                task.cancel()

    def _accept(self, number: int, method: str, payload: object) -> None:
        if number in self._working:
            raise RpcError(RpcErrorCode.PROTOCOL_MISMATCH, f"two requests have the number {number}")
        if len(self._working) >= AT_ONCE:
            self._send(
                encode_response(
                    number,
                    None,
                    RpcError(RpcErrorCode.HOST_OVERLOADED, f"{AT_ONCE} requests at once"),
                )
            )
            return
        task = asyncio.create_task(self._answer(number, method, payload))
        self._working[number] = task
        task.add_done_callback(lambda _: self._working.pop(number, None))

    async def _answer(self, number: int, method: str, payload: object) -> None:
        value = None
        with capture_error() as attempt:
            value = await contain(self._handle(method, payload))
        error = attempt.error
        if error is not None and not isinstance(error, RpcError):
            logger.error("%s raised", method, exc_info=error)
            error = RpcError(RpcErrorCode.CAPABILITY_FAILED, f"{type(error).__name__}: {error}")
        try:
            frame = encode_response(number, value, error)
        except RpcError as unsendable:
            frame = encode_response(number, None, unsendable)
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()
        if self.is_open:
            self._writer.write(frame)

    def _end(self, error: RpcError) -> None:
        if self._ended is not None:
            return
        self._ended = error
        self._writer.close()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RpcError(error.code, error.message))
        for task in self._working.values():
            task.cancel()


class _PipeWriter(asyncio.StreamWriter):
    """Writes to one pipe; closing it also closes the pipe for reading."""

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        reads: asyncio.ReadTransport,
        protocol: asyncio.BaseProtocol,
    ) -> None:
        super().__init__(transport, protocol, None, asyncio.get_running_loop())
        self._reads = reads

    def close(self) -> None:
        super().close()
        self._reads.close()


async def open_pipe_streams(
    reads: int, writes: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Streams over two ends of pipes, given as file descriptors, which the streams close from then
    on."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    source, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reads, "rb", 0)
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(writes, "wb", 0)
    )
    return reader, _PipeWriter(transport, source, protocol)
