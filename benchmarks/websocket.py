"""A WebSocket client (RFC 6455) for the loopback address, without a masking loop."""

import asyncio
import base64
import os
import struct
from collections.abc import Callable, Iterator
from typing import Any

HOST = "127.0.0.1"
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """A client's frame with the all-zero masking key: legal, and free of charge."""
    first, size = 0x80 | opcode, len(payload)
    if size < 126:
        head = bytes((first, 0x80 | size))
    elif size < 65536:
        head = struct.pack("!BBH", first, 0xFE, size)
    else:
        head = struct.pack("!BBQ", first, 0xFF, size)
    return head + b"\0\0\0\0" + payload


class FrameReader:
    """Bytes in, whole messages out, fragments joined."""

    def __init__(self) -> None:
        self._buffer = b""
        self._fragments = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """``(opcode, payload)`` of every message that is complete; 0 and 1 and 2 all come as
        TEXT."""
        buffer, start = self._buffer + data, 0
        while (bounds := _payload_bounds(buffer, start)) is not None:
            first = buffer[start]
            payload, start = buffer[bounds[0] : bounds[1]], bounds[1]
            if first & 0x0F > 2:
                yield first & 0x0F, payload
                continue
            self._fragments += payload
            if first & 0x80:
                payload, self._fragments = self._fragments, b""
                yield TEXT, payload
        self._buffer = buffer[start:]


def _payload_bounds(buffer: bytes, start: int) -> tuple[int, int] | None:
    """Where the payload of the frame at ``start`` begins and ends, None while it is not all
    there."""
    begin = start + _header_size(buffer, start)
    if len(buffer) < begin:
        return None
    size = buffer[start + 1] & 0x7F
    if size > 125:
        size = int.from_bytes(buffer[start + 2 : begin], "big")
    return (begin, begin + size) if len(buffer) >= begin + size else None


def _header_size(buffer: bytes, start: int) -> int:
    if len(buffer) - start < 2:
        return 2
    return {126: 4, 127: 10}.get(buffer[start + 1] & 0x7F, 2)


class WebSocket(asyncio.Protocol):
    """One connection; ``on_text(payload)`` is called for each message."""

    def __init__(
        self, port: int, path: str, headers: dict[str, str], on_text: Callable[[bytes], None]
    ) -> None:
        self.port, self.path, self.headers, self.on_text = port, path, headers, on_text
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_open = False
        self.close_reason = ""
        self._reader = FrameReader()
        self._handshake = b""

    async def connect(self, seconds: float = 10) -> None:
        """Raises ConnectionError when the server refuses, TimeoutError when it does not answer."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, HOST, self.port)
        await asyncio.wait_for(self.opened, seconds)

    def send(self, payload: bytes) -> None:
        self.transport.write(frame(payload))

    def close(self) -> None:
        self.is_open = False
        self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        fields = {
            "Host": f"{HOST}:{self.port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
            **self.headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        transport.write(f"GET {self.path} HTTP/1.1\r\n{lines}\r\n".encode())

    def connection_lost(self, exc: Exception | None) -> None:
        if self.is_open:
            self.close_reason = self.close_reason or f"connection lost: {exc}"
        self.is_open = False
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("closed during the handshake"))

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            data = self._read_handshake(data)
        for opcode, payload in self._reader.feed(data) if data else ():
            if opcode == TEXT:
                self.on_text(payload)
            elif opcode == PING:
                self.transport.write(frame(payload, PONG))
            elif opcode == CLOSE:
                self.close_reason = f"closed by the server: {payload[:80]!r}"
                self.transport.close()

    def _read_handshake(self, data: bytes) -> bytes:
        """What follows the handshake's answer once it is complete, else nothing."""
        head, end, rest = (self._handshake + data).partition(b"\r\n\r\n")
        self._handshake += data
        if not end or self.opened.done():
            return b""
        if b" 101" not in head.partition(b"\r\n")[0]:
            self.opened.set_exception(ConnectionError(f"handshake refused: {head[:60]!r}"))
            self.transport.close()
            return b""
        self.is_open = True
        self.opened.set_result(None)
        return rest
