"""One exchange of a download: to checked addresses alone, its body counted. With aiohttp, which is
loaded with the first download.
"""

import asyncio
import contextlib
import socket
import ssl
import zlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address

import aiohttp
from aiohttp import ClientResponse, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType
from aiohttp.http import HttpProcessingError

from tools.fetch.allow_list import Address
from tools.fetch.request import (
    STATUSES,
    ConnectionFailed,
    FetchResponse,
    RequestRefused,
    TlsRefused,
    TooLarge,
    UnreadableAnswer,
    WireRequest,
    follow_redirect,
)
from tools.version import USER_AGENT

# Connections that go only to checked addresses, and end with their request.
#
# The addresses of a request are set in its task for its duration. aiohttp gets them as the answer
# of its resolver. It calls no resolver for hosts that look like an address, so each socket is
# checked again when it is created.


@dataclass(frozen=True, slots=True)
class _Pins:
    addresses: tuple[Address, ...] = ()
    sockets: list[socket.socket] = field(default_factory=list)


_NOTHING = _Pins()
_pins: ContextVar[_Pins] = ContextVar("pins", default=_NOTHING)


@contextlib.contextmanager
def pin_addresses(addresses: Sequence[Address]) -> Iterator[None]:
    """Inside, in this task and those it starts, a :func:`build_pinned_connector` dials
    ``addresses`` and nothing else.

    At the end the connections made inside are cut. Closing alone lets TLS wait half a
    minute for a peer that does not say goodbye.
    """
    pins = _Pins(tuple(addresses))
    token = _pins.set(pins)
    try:
        yield
    finally:
        _pins.reset(token)
        for sock in pins.sockets:
            with contextlib.suppress(OSError):  # closed before
                sock.shutdown(socket.SHUT_RDWR)


def build_pinned_connector(tls: ssl.SSLContext | None, limit_per_host: int) -> TCPConnector:
    """A connector without memory: each request has a connection of its own.

    One that is kept would be to an address that was judged for another request.
    """
    return TCPConnector(
        resolver=_PinnedResolver(),
        use_dns_cache=False,
        force_close=True,
        limit=0,
        limit_per_host=limit_per_host,
        socket_factory=open_pinned_socket,
        ssl=tls or True,
    )


def open_pinned_socket(info: AddrInfoType) -> socket.socket:
    """A socket for ``info``. Raises PermissionError for an address that is not pinned."""
    family, kind, protocol, _name, address = info
    pins = _pins.get()
    if ip_address(address[0]) not in pins.addresses:
        raise PermissionError(f"{address[0]} was not judged")
    sock = socket.socket(family, kind, protocol)
    pins.sockets.append(sock)
    return sock


class _PinnedResolver(AbstractResolver):
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=str(address),
                port=port,
                family=socket.AF_INET6 if address.version == 6 else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in _pins.get().addresses
        ]

    async def close(self) -> None:
        """There is nothing to release."""


# The body of an answer, counted as it comes and as it is unpacked.

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


CONCURRENT_PER_HOST = 16
HEADERS = {"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": ENCODINGS}


class PinnedSession:
    """Exchanges with hosts whose addresses were judged. ``tls`` replaces this machine's trusted
    certificates; bodies are read by ``turn`` (:func:`read_body`)."""

    def __init__(self, tls: ssl.SSLContext | None, turn: asyncio.Lock) -> None:
        self._turn = turn
        self._session = aiohttp.ClientSession(
            connector=build_pinned_connector(tls, CONCURRENT_PER_HOST),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=HEADERS,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            trust_env=False,
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Close what is open; downloads under way fail."""
        await self._session.close()

    async def exchange(
        self, hop: WireRequest, addresses: Sequence[Address], max_bytes: int
    ) -> FetchResponse | WireRequest:
        """The answer, or what is to be asked instead. Raises
        :class:`tools.fetch.request.FetchError`."""
        with pin_addresses(addresses), _in_our_words(hop.url.raw_host or ""):
            response = await self._session.request(
                hop.method, hop.url, headers=hop.headers, data=hop.body, allow_redirects=False
            )
            try:
                if response.status in STATUSES and (location := response.headers.get("Location")):
                    return follow_redirect(hop, response.status, location)
                if response.status < 200:
                    raise UnreadableAnswer(f"an answer of status {response.status} is no end")
                headers: dict[str, str] = {}
                for name, value in response.headers.items():
                    headers.setdefault(name.lower(), value)
                body = await read_body(response, max_bytes, self._turn)
                return FetchResponse(str(response.url), response.status, headers, body)
            finally:
                response.close()


@contextlib.contextmanager
def _in_our_words(host: str) -> Iterator[None]:
    """Raise what aiohttp raises inside as a :class:`FetchError`."""
    try:
        yield
    except aiohttp.InvalidURL as error:
        raise RequestRefused(f"the client does not take this URL of {host}") from error
    except (aiohttp.ClientSSLError, ssl.SSLError) as error:
        raise TlsRefused(f"{host}: {error}") from error
    except (aiohttp.ClientResponseError, HttpProcessingError) as error:
        raise UnreadableAnswer(f"{host} did not answer in HTTP: {error.message}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionFailed(f"{host}: {error}") from error
