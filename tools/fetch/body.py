"""The body of an answer, counted as it comes and as it is unpacked."""

import asyncio
import zlib
from collections.abc import Iterator

from aiohttp import ClientResponse

from tools.fetch.errors import ConnectionFailed, TooLarge, UnreadableAnswer

ENCODINGS = "gzip, deflate"
"""For ``Accept-Encoding``: what the standard library unpacks piece by piece. Others, and several at
once, are refused."""
PIECE = 256 * 1024
"""Bytes that are unpacked at a time; about half a millisecond of the event loop."""


async def read_body(response: ClientResponse, max_bytes: int, turn: asyncio.Lock) -> bytes:
    """The body, unpacked. Bodies that share a ``turn`` take the event loop one piece at a time, all
    of them together.

    Otherwise many large ones at once would hold up each round of the loop many times over.

    Raises :class:`TooLarge` as soon as its claimed, received or unpacked length is over
    ``max_bytes``, :class:`UnreadableAnswer` and :class:`ConnectionFailed`. The memory it
    takes is bounded by ``max_bytes`` as well, whatever is claimed.
    """
    if response.method == "HEAD":
        return b""
    if (response.content_length or 0) > max_bytes:
        raise TooLarge(max_bytes)
    unpacking = BodyDecoder(response.headers.get("Content-Encoding", ""))
    received, body = 0, bytearray()
    async for chunk in response.content.iter_any():
        received += len(chunk)
        for piece in unpacking.pieces(chunk):
            async with turn:
                body += piece
                if max(received, len(body)) > max_bytes:
                    raise TooLarge(max_bytes)
                await asyncio.sleep(0)
    if received and not unpacking.is_complete:
        raise ConnectionFailed("the packed body ends in the middle")
    return bytes(body)


class BodyDecoder:
    """One body's ``Content-Encoding`` undone. Raises :class:`UnreadableAnswer`, also for encodings
    that were not asked for."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._stream: zlib._Decompress | None = None
        if self._encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise UnreadableAnswer(
                f"the body has the encoding {encoding[:100]!r}, which was not asked for"
            )

    @property
    def is_complete(self) -> bool:
        """Whether the packed stream has come to its end; true of what is not packed."""
        return self._encoding in ("", "identity") or (self._stream is not None and self._stream.eof)

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What ``chunk`` unpacks to, at most ``PIECE`` bytes at a time; at least one piece, which
        may be empty."""
        if self._encoding in ("", "identity"):
            yield chunk
            return
        while chunk:
            stream = self._stream = self._stream or zlib.decompressobj(self._window(chunk[0]))
            if stream.eof:
                raise UnreadableAnswer("the packed body goes on after its end")
            try:
                piece = stream.decompress(chunk, PIECE)
            except zlib.error as error:
                raise UnreadableAnswer(f"the body cannot be unpacked: {error}") from error
            yield piece
            chunk = stream.unconsumed_tail or stream.unused_data

    def _window(self, first: int) -> int:
        """zlib's ``wbits``. "deflate" means the zlib format (RFC 9110, 8.4.1.2); some servers send
        the bare stream."""
        if self._encoding != "deflate":
            return 16 + zlib.MAX_WBITS
        return zlib.MAX_WBITS if first & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS
