"""The HTTP connections of one server: how many there may be, how long they may take, how much they
may bring.

A WebSocket is among them until its handshake is over; an established one is the gateway's.
Peers behind a local socket have no address, so only what holds for all of them holds for them.
"""

import ipaddress
import logging
import time
from collections import Counter, defaultdict
from enum import Enum
from typing import Any, Protocol

from tools.log_limit import LogLimit

logger = logging.getLogger(__name__)
limit = LogLimit(logger)

#: Unfinished requests of one address.
PER_ADDRESS = 50
#: A request this young, in seconds, is not counted among them: many clients may come back at once.
YOUNG_SECONDS = 1.0
#: Bytes of bodies that are held at a time: of one address, and in all.
HELD_OF_ADDRESS, HELD = 256 * 2**20, 512 * 2**20
#: The part of it that only small bodies may use, so that large ones leave room for sign-ins and
#: queries.
KEPT_FOR_SMALL = 32 * 2**20
#: Bytes a second that earn a body more time than it has.
SLOWEST_RATE = 128 * 2**10


class ConnectionPhase(Enum):
    """What a connection is doing, with the seconds that it may take; None for as long as the
    application does."""

    HEAD = 15.0
    BODY = 60.0
    ANSWER = None
    HANDSHAKE = 20.0
    #: Kept alive for a next request.
    IDLE = 61.0
    #: Answered for the last time; the client still reads.
    CLOSING = 600.0
    #: Refused; what the client still sends is dropped.
    LEAVING = 2.0


UNFINISHED = (ConnectionPhase.HEAD, ConnectionPhase.BODY, ConnectionPhase.HANDSHAKE)
DISPENSABLE = (ConnectionPhase.IDLE, ConnectionPhase.CLOSING, ConnectionPhase.LEAVING)


class HttpConnection(Protocol):
    """What this module knows of a connection. ``since``: when its phase began; ``address``: see
    :func:`peer_client_key`."""

    phase: ConnectionPhase
    since: float
    address: str
    transport: Any

    def received(self) -> int: ...
    def give_up(self) -> None: ...


def peer_client_key(peer: Any) -> str:
    """The client that a connection counts for: an IPv4 address, or the /64 network of an IPv6 one;
    "" for a local socket."""
    return client_key(getattr(peer, "host", ""))


def client_key(host: str) -> str:
    """The same of an address in writing. Raises ValueError for what is none."""
    if not host:
        return ""
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))


class HttpConnections:
    """All connections that are no established WebSocket, by transport, in the order they came."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._connections: dict[Any, HttpConnection] = {}
        self._held: Counter[str] = Counter()

    def has_room(self) -> bool:
        """Whether one more may come in, for which another may have to go."""
        if len(self._connections) < self._most:
            return True
        victim = self._most_dispensable()
        if victim is None:
            limit.warn(
                "full",
                "%s connections are being answered at a time: no further one is let in",
                self._most,
            )
            return False
        self._cut(victim)
        return True

    def add(self, connection: HttpConnection) -> None:
        self._connections[connection.transport] = connection

    def remove(self, transport: Any) -> None:
        """Forget a connection that has ended or become a WebSocket; not an error for one that is
        not known."""
        self._connections.pop(transport, None)

    def hold(self, address: str, size: int, *, is_small: bool) -> bool:
        """Whether ``size`` more bytes of a body may be held; they are held then, until they are
        released."""
        kept = 0 if is_small else KEPT_FOR_SMALL
        if self._held.total() + size > HELD - kept or (
            address and self._held[address] + size > HELD_OF_ADDRESS - kept
        ):
            return False
        self._held[address] += size
        return True

    def release(self, address: str, size: int) -> None:
        self._held[address] -= size
        if not self._held[address]:
            del self._held[address]

    def look_after(self) -> None:
        """End what takes too long, and what is too much of one address. To be called every few
        seconds."""
        now = time.monotonic()
        unfinished = defaultdict(list)
        for connection in list(self._connections.values()):
            if connection.phase.value is not None and now - connection.since > _allowed(connection):
                connection.give_up()
            elif (
                connection.phase in UNFINISHED
                and connection.address
                and now - connection.since > YOUNG_SECONDS
            ):
                unfinished[connection.address].append(connection)
        for address, connections in unfinished.items():
            if len(connections) > PER_ADDRESS:
                limit.warn(
                    address,
                    "%s left %s requests unfinished: the oldest are ended",
                    address,
                    len(connections),
                )
            for connection in sorted(connections, key=lambda each: each.since)[:-PER_ADDRESS]:
                self._cut(connection)

    def _most_dispensable(self) -> HttpConnection | None:
        """One that has its answer, else the oldest unfinished one of the client with most of
        them."""
        every = self._connections.values()
        if idle := [each for each in every if each.phase in DISPENSABLE]:
            return min(idle, key=lambda each: each.since)
        crowds = Counter(each.address for each in every if each.phase in UNFINISHED)
        if not crowds:
            return None
        largest = crowds.most_common(1)[0][0]
        return min(
            (each for each in every if each.phase in UNFINISHED and each.address == largest),
            key=lambda each: each.since,
        )

    def _cut(self, connection: HttpConnection) -> None:
        self.remove(connection.transport)
        connection.transport.abortConnection()


def _allowed(connection: HttpConnection) -> float:
    """Seconds that a connection may spend in its phase."""
    earned = (
        connection.received() / SLOWEST_RATE if connection.phase is ConnectionPhase.BODY else 0.0
    )
    return (connection.phase.value or 0.0) + earned
