"""HTTP connections like those of daphne and Twisted, but with limits for heads and bodies.

Twisted writes a body of any size to a temporary file before the application is called, and parses
forms a second time. daphne then copies the whole body into memory and blocks the event loop
meanwhile. Here a body is refused as soon as it is known to be too large, and the application gets
it in pieces, on request. :mod:`frostproject.server.http_connections` limits how long a request may
take to arrive and how many connections there may be; each connection reports its state to it.
"""

import asyncio
import json
import logging
import time
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any
from urllib.parse import unquote

from daphne.http_protocol import HTTPFactory, WebRequest
from django.conf import settings
from twisted.web import http

from frostproject.server.http_connections import ConnectionPhase, HttpConnections, peer_client_key
from frostproject.web.http import MAX_BODY, Receive, Send
from tools.log_limit import LogLimit

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

    def __init__(self, *arguments: Any) -> None:
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

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 - Twisted's name
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

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
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

    def requestDone(self, request: Any) -> None:  # noqa: N802
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

    def buildProtocol(self, addr: Any) -> BoundedChannel | None:  # noqa: N802 - Twisted's name
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
