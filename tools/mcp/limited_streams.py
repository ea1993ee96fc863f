"""The bytes of an answer over HTTP, with bounds on each message before the library decodes it.

How much one JSON message may decode to, counted in its bytes before it is decoded.

A message is decoded on the event loop, and everything else waits. How long that takes depends
less on its bytes than on its values: two bytes of JSON are a list of 60 bytes of memory.
"""

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from tools.mcp.rate_limits import ServerRateLimit

MAX_CONTAINERS = 50_000
"""Objects and lists of one message. Each may cost 3 µs with the pass of the garbage collector that
it brings, so that these take less than 0.2 s."""
MAX_VALUES = 200_000
"""Values of one message, objects and lists among them. A text with a key of its own costs 0.8 µs,
so that these take less than 0.2 s."""
TOO_MANY_VALUES = "more values than a message may have"
"""In the error for a message that is beyond one of the two."""
_OTHER_BYTES = bytes(set(range(256)) - set(b'",[{'))


def has_too_many_values(text: bytes) -> bool:
    """Whether the JSON ``text`` is beyond one of the two limits, found in 40 ms for 8 MiB."""
    if len(text) <= MAX_CONTAINERS:
        return False
    containers, values = count_values(text)
    return containers > MAX_CONTAINERS or values > MAX_VALUES


def count_values(text: bytes) -> tuple[int, int]:
    """The objects and lists of the JSON ``text``, and its values: each, an empty object or list
    twice. With far more texts than are allowed, they alone are counted.

    Of a text that is no JSON, what comes before the first error is counted as in one that is.
    """
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")  # an escaped quote ends no text
    signs = plain.translate(None, _OTHER_BYTES)
    # Each text is a value, or a key with one. Beyond the limit it is not worth a closer look.
    from_texts = signs.count(b'"') // 4
    if from_texts > MAX_VALUES:
        return 0, from_texts
    # Two quotes side by side enclose no sign, or stand between two texts: either way what
    # follows is as much inside of a text, or outside, as before.
    outside = b"".join(signs.replace(b'""', b"").split(b'"')[::2])
    # Each value is the first of a list or object, or comes after a comma.
    return len(outside) - outside.count(b","), max(len(outside), from_texts)


MAX_BODY = 8 * 2**20
"""Bytes of an answer, and of one event of a stream."""
MORE_BYTES = "the answer has more bytes than it may have"
"""In the library's error for an answer that was cut off."""


class LimitedBody(httpx2.AsyncByteStream):
    """The bytes of ``inner``, which are one message, not faster than others bear.

    One that is beyond a limit is a StreamError, which costs the one request.
    """

    def __init__(self, inner: Any, flow: ServerRateLimit) -> None:
        self._inner, self._flow = inner, flow

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = bytearray()
        async for part in self._inner:
            body += part
            await self._flow.heard(len(part))
            if len(body) > MAX_BODY:
                raise httpx2.StreamError(MORE_BYTES)
            yield part
        if has_too_many_values(bytes(body)):
            raise httpx2.StreamError(TOO_MANY_VALUES)

    async def aclose(self) -> None:
        await self._inner.aclose()


class LimitedEvents(httpx2.AsyncByteStream):
    """The bytes of ``inner``, a stream of events in UTF-8, not faster than others bear.

    An event that is beyond a limit is an SSEError, which ends the stream. The library bounds the
    bytes of an event of many lines.
    """

    def __init__(self, inner: Any, flow: ServerRateLimit) -> None:
        self._inner, self._flow = inner, flow

    async def __aiter__(self) -> AsyncIterator[bytes]:
        events = EventChecker()
        async for part in self._inner:
            await self._flow.heard(len(part))
            if lines := events.pass_lines(part):
                yield lines
        yield events.pass_rest()

    async def aclose(self) -> None:
        await self._inner.aclose()


class EventChecker:
    """Passes on the lines of a stream of events; no event ends before its data was judged."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._data: list[bytes] = []

    def pass_lines(self, part: bytes) -> bytes:
        """The lines that end in ``part``. Raises SSEError for an event beyond a limit."""
        # After a carriage return at the end of the part there may be a line feed in the next.
        end = max(part.rfind(b"\n"), part.rfind(b"\r", 0, -1)) + 1
        lines = b""
        if end:
            lines, self._held = bytes(self._held) + part[:end], bytearray()
        self._held += part[end:]
        if len(self._held) > MAX_BODY:
            raise httpx2.SSEError(MORE_BYTES)
        self._judge(lines)
        return lines

    def pass_rest(self) -> bytes:
        """What came after the last line, when there is no more."""
        rest = bytes(self._held)
        self._judge(rest + b"\n\n")
        return rest

    def _judge(self, lines: bytes) -> None:
        for line in lines.splitlines():
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif not line and self._data:
                data, self._data = b"\n".join(self._data), []
                if has_too_many_values(data):
                    raise httpx2.SSEError(TOO_MANY_VALUES)
