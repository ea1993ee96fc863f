"""HTTP connections like those of daphne and Twisted, but with limits for heads and bodies.

Twisted writes a body of any size to a temporary file before the application is called, and parses
forms a second time. daphne then copies the whole body into memory and blocks the event loop
meanwhile. Here a body is refused as soon as it is known to be too large, and the application gets
it in pieces, on request. Each connection reports its state to :class:`HttpConnections`, which
limits how many there may be, how long they may take and how much they may bring.

A WebSocket is among them until its handshake is over; an established one is the gateway's.
Peers behind a local socket have no address, so only what holds for all of them holds for them.
"""

import asyncio
import ipaddress
import json
import logging
import time
from collections import Counter, defaultdict
from enum import Enum
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any, Protocol
from urllib.parse import unquote

from daphne.http_protocol import HTTPFactory, WebRequest
from django.conf import settings
from twisted.web import http

from frostproject.web.http import MAX_BODY, Receive, Send
from tools.error_boundary import LogLimit
from tools.time_limits import TIME_LIMITS

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
    """What a connection is doing, with the seconds that it may take, of which no two have the
    same; None for as long as the application does."""

    HEAD = TIME_LIMITS.request_head
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
    persistent: bool

    def received(self) -> int: ...
    def give_up(self) -> None: ...


def peer_client_key(peer: object) -> str:
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
        self.is_ending = False
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

    def remove(self, transport: object) -> None:
        """Forget a connection that has ended or become a WebSocket; not an error for one that is
        not known."""
        self._connections.pop(transport, None)

    def take_no_more(self) -> None:
        """Have no connection ask for anything more: what is being answered is closed behind its
        answer, and the others at once."""
        self.is_ending = True
        for connection in list(self._connections.values()):
            if connection.phase is ConnectionPhase.ANSWER:
                connection.persistent = False
            elif connection.phase is ConnectionPhase.IDLE or connection.phase in UNFINISHED:
                connection.transport.abortConnection()

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
            seconds = connection.phase.value
            if seconds is not None and connection.phase is ConnectionPhase.BODY:
                seconds += connection.received() / SLOWEST_RATE
            if seconds is not None and now - connection.since > seconds:
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


HTTPChannel: Any = http.HTTPChannel  # half of it has types
logger = logging.getLogger(__name__)
limit = LogLimit(logger)

#: Bytes of a body that are kept in memory; more of it goes to a temporary file.
MEMORY_BODY_BYTES = 64 * 2**10
#: Bytes that an application is handed at a time.
PIECE_BYTES = 64 * 2**10
#: Bytes that a refused client may still send, so that it reads why instead of a reset.
LINGER_BYTES = 8 * 2**20
#: Where the body of a request is found in its scope, on the way to :func:`with_streamed_body`.
BODY_KEY = "frost.body"
#: autobahn reads the head of a handshake with ``splitlines``, for which these bytes of a value
#: would begin a new header.
UNSPLIT = bytes.maketrans(b"\x0b\x0c\x1c\x1d\x1e\x85", b"??????")
STATUS = {408: b"Request Timeout", 413: b"Content Too Large", 503: b"Service Unavailable"}


class BoundedRequest(WebRequest):  # type: ignore[misc]  # daphne has no types
    """One request, whose body is bounded while it comes in. ``body`` is the whole of it once it is
    there."""

    body: Any = None
    content: Any

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, parsePOSTFormSubmission=False)  # forms are Django's to read
        self.size = self._limit = self._held = 0
        self._is_upgrade = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """The head was received; ``length`` is None for a chunked body, whose size is known only at
        its end."""
        self.content = SpooledTemporaryFile(max_size=MEMORY_BODY_BYTES)  # noqa: SIM115
        self._is_upgrade = (
            self.requestHeaders.getRawHeaders(b"upgrade", [b""])[0].lower() == b"websocket"
        )
        self._limit = max_body_bytes(
            self.channel._command,
            self.channel._path,
            self.server.root_path,
            peer=getattr(self.channel.transport.getPeer(), "host", ""),
            is_upgrade=self._is_upgrade,
            cookies=self.received_cookies,
        )
        if length is not None and length > self._limit:
            self._refuse_body()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self.channel.phase is ConnectionPhase.LEAVING:
            return
        self.size += len(data)
        if self.size > self._limit:
            self._refuse_body()
        elif not self.channel.callers.hold(
            self.channel.address, len(data), is_small=self.size <= MEMORY_BODY_BYTES
        ):
            self.channel.refuse(503, "too much is being uploaded at the moment")
        else:
            self._held += len(data)
            self.content.write(data)

    def process(self) -> Any:
        self.requestHeaders.removeHeader(
            b"daphne-root-path"
        )  # the command line says where this server is, not its clients
        if not self.uri.startswith(
            b"/"
        ):  # such a target names the host and overrides the header (RFC 9112, 3.2.2)
            self.requestHeaders.setRawHeaders(
                b"host", [self.uri.partition(b"//")[2].partition(b"/")[0]]
            )
        self.channel.enter(
            ConnectionPhase.HANDSHAKE if self._is_upgrade else ConnectionPhase.ANSWER
        )
        if self._is_upgrade:
            for name, values in list(self.requestHeaders.getAllRawHeaders()):
                self.requestHeaders.setRawHeaders(
                    name, [value.translate(UNSPLIT) for value in values]
                )
        if self.size:  # daphne finds nothing to copy
            self.body, self.content = self.content, BytesIO()
        return super().process()

    def finish(self) -> None:
        self._drop_body(self.channel)
        super().finish()

    def connectionLost(self, reason: object) -> None:  # noqa: N802 - Twisted's name
        self._drop_body(self.channel)
        super().connectionLost(reason)

    def _drop_body(self, channel: "BoundedChannel") -> None:
        if self.body is not None:
            self.body.close()
        channel.callers.release(channel.address, self._held)
        self._held = 0

    def _refuse_body(self) -> None:
        self.content.close()
        what = (
            f"the body is larger than {self._limit} bytes"
            if self._limit
            else "this request may not have a body"
        )
        self.channel.refuse(413, what)


class BoundedChannel(HTTPChannel):  # type: ignore[misc]  # as above
    """One connection, until it is closed or becomes a WebSocket."""

    requestFactory = BoundedRequest  # noqa: N815 - Twisted's name
    phase, since, address = ConnectionPhase.HEAD, 0.0, ""
    _discarded = 0

    @property
    def callers(self) -> HttpConnections:
        callers: HttpConnections = self.factory.server.callers
        return callers

    def enter(self, phase: ConnectionPhase) -> None:
        self.phase, self.since = phase, time.monotonic()

    def received(self) -> int:
        """Bytes of the body that is coming in."""
        return self.requests[-1].size if self.requests else 0

    def refuse(self, status: int, reason: str) -> None:
        """Answer and close, without reading more from the client; does nothing when already
        closing."""
        if self.phase is ConnectionPhase.LEAVING:
            return
        self.enter(ConnectionPhase.LEAVING)
        limit.warn(
            (self.address, status),
            "Refused a request of %s with %s: %s",
            self.address or "a local socket",
            status,
            reason,
        )
        body = json.dumps({"result": "", "error": reason}).encode()
        head = (
            b"HTTP/1.1 %d %s\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        self.transport.write(head % (status, STATUS[status], len(body)) + body)

    def give_up(self) -> None:
        """What it is doing takes too long."""
        if self.phase in (ConnectionPhase.HEAD, ConnectionPhase.BODY):
            self.refuse(408, "the request did not arrive in time")
        elif self.phase is ConnectionPhase.IDLE:
            self.enter(ConnectionPhase.LEAVING)
            self.loseConnection()
        else:
            self.transport.abortConnection()

    # --- What Twisted calls -----------------------------------------------------

    def connectionMade(self) -> None:  # noqa: N802
        super().connectionMade()
        self.address = peer_client_key(self.transport.getPeer())
        self.enter(ConnectionPhase.HEAD)
        self.callers.add(self)

    def connectionLost(self, reason: object) -> None:  # noqa: N802
        self.callers.remove(self.transport)
        super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.phase is ConnectionPhase.LEAVING:
            self._discarded += len(data)
            if self._discarded > LINGER_BYTES:
                self.transport.abortConnection()
            return
        if self.phase is ConnectionPhase.IDLE:
            self.enter(ConnectionPhase.HEAD)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:  # noqa: N802
        self.enter(ConnectionPhase.BODY)
        super().allHeadersReceived()

    def rawDataReceived(self, data: bytes) -> None:  # noqa: N802
        if self.phase is not ConnectionPhase.LEAVING:
            super().rawDataReceived(data)

    def allContentReceived(self) -> None:  # noqa: N802
        if self.phase is not ConnectionPhase.LEAVING:
            super().allContentReceived()

    def checkPersistence(self, request: object, version: bytes) -> bool:  # noqa: N802
        return not self.callers.is_ending and bool(super().checkPersistence(request, version))

    def requestDone(self, request: object) -> None:  # noqa: N802
        has_more = any(self._dataBuffer)
        self.enter(
            ConnectionPhase.CLOSING
            if not self.persistent
            else ConnectionPhase.HEAD
            if has_more
            else ConnectionPhase.IDLE
        )
        super().requestDone(request)

    def _send100Continue(self) -> None:  # noqa: N802
        if self.phase is not ConnectionPhase.LEAVING:
            super()._send100Continue()


class BoundedFactory(HTTPFactory):  # type: ignore[misc]  # daphne has no types
    """Makes the connections of one server: HTTP/1.1 alone, since what HTTP/2 multiplexes is bounded
    by nothing here."""

    def buildProtocol(self, addr: object) -> BoundedChannel | None:  # noqa: N802 - Twisted's name
        if not self.server.callers.has_room():
            return None
        channel = BoundedChannel()
        channel.factory, channel.callLater = self, self.reactor.callLater
        channel.timeOut = None  # time is kept by the callers
        return channel

    def acceptableProtocols(self) -> list[bytes]:  # noqa: N802 - Twisted's name
        return [b"http/1.1"]


def with_streamed_body(application: Any) -> Any:
    """``application``, which receives the body of a request in pieces, on demand."""

    async def call(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = scope.pop(BODY_KEY, None)
        await application(scope, receive if body is None else _reading(body, receive), send)

    return call


def _reading(body: Any, receive: Receive) -> Receive:
    """The pieces of ``body``, then daphne's messages: the end of the body, and later the
    disconnect."""
    is_read = False

    async def next_message() -> dict[str, Any]:
        nonlocal is_read
        if is_read:
            return await receive()
        await asyncio.sleep(0)  # a large body must not keep others waiting
        if body.closed:
            return {"type": "http.disconnect"}
        if piece := body.read(PIECE_BYTES):
            return {"type": "http.request", "body": piece, "more_body": True}
        is_read = True
        body.close()
        return await receive()

    return next_message


# What one HTTP request may bring along, judged by its head alone.

#: What a signed-in user may upload: a file of 100 MiB, and the form around it.
MAX_UPLOAD = 101 * 2**20
#: What anybody may who is outside ADMIN_NETWORKS: it is refused anyway, and need not be kept until
#: it has come in.
MAX_OUTSIDE = 64 * 2**10
#: Requests of these methods have no body.
BODILESS = (b"GET", b"HEAD")


def max_body_bytes(
    method: bytes,
    target: bytes,
    root: str,
    *,
    peer: str,
    is_upgrade: bool,
    cookies: dict[bytes, bytes],
) -> int:
    """Bytes that the body of a request to ``target`` may have; ``root`` is the URL prefix of this
    server.

    ``peer`` is the address at the other end, "" for a local socket.

    Session cookies are not checked here: a forged one only gives the larger limit.
    """
    if is_upgrade or method in BODILESS:
        return 0
    if peer not in settings.ADMIN_NETWORKS:
        return MAX_OUTSIDE
    path = unquote(target.partition(b"?")[0].decode("latin1")).removeprefix(root)
    has_session = bool(cookies.get(settings.SESSION_COOKIE_NAME.encode()))
    return MAX_UPLOAD if has_session and path.startswith("/admin/") else MAX_BODY
