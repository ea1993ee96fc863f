"""HTTP connections as daphne and Twisted make them, but for bodies without bounds.

Twisted takes a body of any size into a temporary file before anybody is asked, and reads forms in it a second time;
daphne then copies all of it into memory while nothing else runs. Here a body is refused as soon as it is known to be
too large, and is handed to the application in pieces as that asks for them.
"""

import asyncio
import json
import logging
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from twisted.web import http

from frostproject.http import Receive, Send
from frostproject.http_limits import body_limit
from tools.log_limit import LogLimit

logger = logging.getLogger(__name__)
limit = LogLimit(logger)

#: Bytes of a body that are kept in memory; more of it goes to a temporary file.
IN_MEMORY = 64 * 2**10
#: Bytes that an application is handed at a time.
PIECE = 64 * 2**10
#: What a refused client may still send, in seconds and bytes, so that it reads why instead of a reset.
LINGER_SECONDS, LINGER_BYTES = 2.0, 8 * 2**20
#: Where the body of a request is found in its scope, on the way to :func:`in_pieces`.
BODY = "frost.body"
STATUS = {413: b"Content Too Large"}


class Request(WebRequest):  # type: ignore[misc]  # daphne has no types
    """One request, whose body is bounded while it comes in. ``body`` is the whole of it once it is there."""

    body: Any = None

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, parsePOSTFormSubmission=False)  # forms are Django's to read
        self._size = self._limit = 0

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """The head is there; ``length`` is None for a body in chunks, which tells its size at the end."""
        self.content = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed with the request
        upgrade = self.requestHeaders.getRawHeaders(b"upgrade", [b""])[0]
        self._limit = body_limit(
            self.channel._command,
            self.channel._path,
            self.server.root_path,
            is_upgrade=upgrade.lower() == b"websocket",
            cookies=self.received_cookies,
        )
        if length is not None and length > self._limit:
            self._refuse()

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._size += len(data)
        if self._size > self._limit:
            self._refuse()
        else:
            self.content.write(data)

    def process(self) -> Any:
        if self._size:  # daphne finds nothing to copy
            self.body, self.content = self.content, BytesIO()
        return super().process()

    def finish(self) -> None:
        self._drop_body()
        super().finish()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802 - Twisted's name
        self._drop_body()
        super().connectionLost(reason)

    def _drop_body(self) -> None:
        if self.body is not None:
            self.body.close()

    def _refuse(self) -> None:
        self.content.close()
        what = f"the body is larger than {self._limit} bytes" if self._limit else "this request may not have a body"
        self.channel.refuse(413, what)


class Channel(http.HTTPChannel):  # type: ignore[misc]  # Twisted has no types
    """One connection, until it is closed or becomes a WebSocket."""

    requestFactory = Request  # noqa: N815 - Twisted's name
    is_leaving = False
    _discarded = 0

    def refuse(self, status: int, reason: str) -> None:
        """Answer and close, whatever else the client sends; once it has begun that, nothing more."""
        if self.is_leaving:
            return
        self.is_leaving = True
        peer = getattr(self.transport.getPeer(), "host", "")
        limit.warn((peer, status), "Refused a request of %s with %s: %s", peer or "a local socket", status, reason)
        body = json.dumps({"result": "", "error": reason}).encode()
        head = b"HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % (status, STATUS[status], len(body)) + body)
        self.callLater(LINGER_SECONDS, self.transport.abortConnection)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if not self.is_leaving:
            super().dataReceived(data)
            return
        self._discarded += len(data)
        if self._discarded > LINGER_BYTES:
            self.transport.abortConnection()

    def rawDataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if not self.is_leaving:
            super().rawDataReceived(data)

    def allContentReceived(self) -> None:  # noqa: N802 - Twisted's name
        if not self.is_leaving:
            super().allContentReceived()

    def _send100Continue(self) -> None:  # noqa: N802 - Twisted's name
        if not self.is_leaving:
            super()._send100Continue()


class Factory(HTTPFactory):  # type: ignore[misc]  # daphne has no types
    """Makes the connections of one server: HTTP/1.1 alone, since what HTTP/2 multiplexes is bounded by nothing here."""

    def buildProtocol(self, addr: Any) -> Channel:  # noqa: N802 - Twisted's name
        channel = Channel()
        channel.factory, channel.callLater, channel.timeOut = self, self.reactor.callLater, self.timeOut
        return channel

    def acceptableProtocols(self) -> list[bytes]:  # noqa: N802 - Twisted's name
        return [b"http/1.1"]


def in_pieces(application: Any) -> Any:
    """``application``, given the body of a request piece by piece, as it asks for it."""

    async def call(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = scope.pop(BODY, None)
        await application(scope, receive if body is None else _reading(body, receive), send)

    return call


def _reading(body: Any, receive: Receive) -> Receive:
    """What comes from ``body``, then what daphne has to say: the end of it, and later that the client is gone."""
    is_read = False

    async def next_message() -> dict[str, Any]:
        nonlocal is_read
        if is_read:
            return await receive()
        await asyncio.sleep(0)  # a large body must not keep others waiting
        if body.closed:
            return {"type": "http.disconnect"}
        if piece := body.read(PIECE):
            return {"type": "http.request", "body": piece, "more_body": True}
        is_read = True
        body.close()
        return await receive()

    return next_message
