"""Connections that go only to checked addresses, and end with their request.

The addresses of a request are set in its task for its duration. aiohttp gets them as the answer of
its resolver. It calls no resolver for hosts that look like an address, so each socket is checked
again when it is created.
"""

import contextlib
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

from tools.fetch.addresses import Address


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
