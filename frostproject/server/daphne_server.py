"""daphne, with frames as large as OneBot clients send them and an orderly way out.

daphne on SIGTERM cancels its applications without a word: no close frame, no
``disconnect``, abandoned tasks; with a connection that is a moment old it even crashes
the interpreter. This server first lets the gateway drain while sockets still work.
It leans on ``connections`` and ``kill_all_applications`` of daphne 4.2.
"""

import asyncio
import gc
import logging
import os
import sys
import threading
from itertools import chain
from typing import Any, ClassVar, cast

from daphne import server as daphne_server  # first of all Twisted imports: it installs the reactor

# isort: split
from autobahn.websocket import protocol as autobahn_protocol
from daphne.ws_protocol import WebSocketProtocol
from django.conf import settings
from django.utils.translation import gettext as _
from twisted.internet import defer, reactor

from frostproject.metrics.traces import TraceExport
from frostproject.server import http_channel, process_memory
from frostproject.web.logs import redact_secrets
from frostproject.web.mcp import McpEndpoint
from onebot.connections.client import LINK_KEY
from onebot.gateway.consumer import LARGE_FRAME_BYTES
from onebot.gateway.gateway import Gateway
from tools import error_boundary, time_limits

logger = logging.getLogger(__name__)

#: What runs may still finish after SIGTERM, in seconds.
DRAIN_SECONDS = time_limits.TIME_LIMITS.drain
#: What applications may still do after that, in seconds.
LAST_SECONDS = 1.0
#: What all of this takes at most, whatever hangs: `docker stop` waits for ten seconds.
END_SECONDS = DRAIN_SECONDS + 3.5
#: Frames of one socket, and bytes or characters of them, that may wait to be taken in before it is
#: read no further.
FRAMES_WAITING, BYTES_WAITING = 256, 64 * 2**20
#: The interval of checks whether the socket may be read again, in seconds.
LOOK_AGAIN_SECONDS = 0.1
#: The interval of checks for HTTP connections that take too long, in seconds.
LOOK_AFTER_SECONDS = 1.0
#: Objects made and not yet gone before garbage is looked for: runs that wait hold thousands, and
#: next to nothing of a message is in a circle (of 5,200 messages: 800 objects, 7 % of the time).
YOUNG_OBJECTS = 20_000
#: Requested every few seconds by monitoring.
PROBE_PATHS = ("/health", "/ready")
#: Close code of a server that goes away.
GOING_AWAY = 1001
#: daphne's own limits, which its command line sets by default.
DAPHNE_LIMIT = 1024 * 1024
DAPHNE_LIFETIME = 86_400
DAPHNE_PING, DAPHNE_UNANSWERED = 20, 30


class BackpressureProtocol(WebSocketProtocol):  # type: ignore[misc]  # daphne has no types
    """What daphne does not see to when it hands frames on to the consumer, and the
    :class:`onebot.connections.client.Link` that is given to that.

    Large ones are handed on as they came: as text, one emoji makes every character four
    bytes wide. While too much waits for the consumer, which waits for the database, the
    socket is not read; daphne's own queue has no bound.
    """

    is_held = False

    def onOpen(self) -> None:  # noqa: N802 - autobahn's name
        self.factory.server_class.callers.remove(
            self.transport
        )  # from now on it may stay as long as it likes
        super().onOpen()

    @property
    def received(self) -> int:
        return int(self.trafficStats.incomingOctetsWireLevel)

    def require_pongs(self, are_required: bool) -> None:
        """Whether the connection ends where a ping is not answered. A client that never reads its
        socket never does, and may be told by its heartbeats that it is there."""
        self.autoPingTimeout = self.server.ping_timeout if are_required else 0
        if not are_required and self.autoPingTimeoutCall is not None:
            self._cancelAutoPingTimeoutCall()

    def connectionLost(self, reason: object) -> None:  # noqa: N802 - autobahn's name
        self.factory.server_class.callers.remove(self.transport)
        super().connectionLost(reason)

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803
        super().onMessage(payload, isBinary or len(payload) > LARGE_FRAME_BYTES)
        if not self.is_held and self._waits_too_much():
            self.is_held = True
            self.transport.pauseProducing()
            cast("Any", reactor).callLater(LOOK_AGAIN_SECONDS, self._read_on)

    def _read_on(self) -> None:
        if self not in self.server.connections:
            return  # it has ended meanwhile
        if self._waits_too_much():
            cast("Any", reactor).callLater(LOOK_AGAIN_SECONDS, self._read_on)
        else:
            self.is_held = False
            self.transport.resumeProducing()

    def _waits_too_much(self) -> bool:
        queue = getattr(self, "application_queue", None)
        waiting = list(queue._queue) if queue is not None else []
        size = sum(len(frame.get("text") or frame.get("bytes") or b"") for frame in waiting)
        return len(waiting) >= FRAMES_WAITING or size >= BYTES_WAITING


def _plain(value: object, **_colours: object) -> object:
    return getattr(value, "__qualname__", value)


class DrainingServer(daphne_server.Server):  # type: ignore[misc]  # daphne has no types
    """The server behind both ``runserver`` and the ``daphne`` command."""

    gateway: ClassVar[Gateway]
    mcp: ClassVar[McpEndpoint | None] = None
    traces: ClassVar[TraceExport]

    def __init__(self, *arguments: object, **options: object) -> None:
        chosen = (
            (
                "websocket_max_message_size",
                DAPHNE_LIMIT,
                settings.DAPHNE_WEBSOCKET_MAX_MESSAGE_SIZE,
            ),
            ("websocket_max_frame_size", DAPHNE_LIMIT, settings.DAPHNE_WEBSOCKET_MAX_FRAME_SIZE),
            (
                "websocket_timeout",
                DAPHNE_LIFETIME,
                -1,
            ),  # a bot stays connected for longer than a day
            ("ping_interval", DAPHNE_PING, time_limits.TIME_LIMITS.ping),
            ("ping_timeout", DAPHNE_UNANSWERED, time_limits.TIME_LIMITS.unanswered_ping),
        )
        for name, stock, ours in chosen:
            if options.get(name, stock) == stock:
                options[name] = ours
        if options.pop("proxy_forwarded_address_header", None):
            logger.warning(
                "--proxy-headers is ignored: who reaches the port without the proxy could claim "
                "any address by it"
            )
        super().__init__(*arguments, **options)
        self.application: Any = http_channel.with_streamed_body(self.application)
        raise_file_limit()
        self.callers = http_channel.HttpConnections(http_connection_limit())
        self._ports: list[Any] = []
        self._refusal = ""

    def run(self) -> None:
        """Serve until the process gets a signal to stop. Exits with an error message when an
        endpoint cannot be opened."""
        self.gateway.prepare()
        self.traces.start()
        cast("Any", reactor).callLater(0, self.gateway.ensure_started)  # once the loop runs
        cast("Any", reactor).callLater(LOOK_AFTER_SECONDS, self._look_after_callers)
        daphne_server.HTTPFactory = http_channel.BoundedFactory  # daphne has no setting for it
        # It colours words for its log of details with each frame, whether or not it writes them.
        words = cast("Any", autobahn_protocol)
        words.hltype = words.hlval = _plain
        process_memory.hide_process_memory()
        gc.freeze()  # what was loaded by now stays; full collections need not walk it each time
        gc.set_threshold(YOUNG_OBJECTS)
        gc.enable()
        super().run()
        if self._refusal:
            sys.exit(_("The server cannot start: %s") % self._refusal)

    def listen_error(self, failure: Any) -> None:
        """What is wrong with an endpoint that :mod:`frostproject.configuration.listening` did not
        judge."""
        self._refusal = failure.getErrorMessage()
        self.stop()

    def listen_success(self, port: object) -> None:
        super().listen_success(port)
        self.ws_factory.protocol = BackpressureProtocol
        self._ports.append(port)

    def create_application(self, protocol: object, scope: dict[str, Any]) -> Any:
        if body := getattr(protocol, "body", None):
            scope[http_channel.BODY_KEY] = body
        scope[LINK_KEY] = protocol if isinstance(protocol, BackpressureProtocol) else None
        return super().create_application(protocol, scope)

    def _look_after_callers(self) -> None:
        cast("Any", reactor).callLater(LOOK_AFTER_SECONDS, self._look_after_callers)
        self.callers.look_after()

    def log_action(self, protocol: str, action: str, details: dict[str, Any]) -> None:
        """The access log, whose addresses may carry a token; successful health probes are left
        out."""
        if details.get("path") in PROBE_PATHS and details.get("status") == 200:
            return
        super().log_action(
            protocol, action, {**details, "path": redact_secrets(str(details.get("path", "")))}
        )

    def kill_all_applications(self) -> Any:
        """What daphne has called before the reactor stops; the reactor waits for it."""
        return defer.Deferred.fromFuture(asyncio.ensure_future(self._drain()))

    async def _drain(self) -> None:
        _end_within(END_SECONDS)
        for phase in (
            self._stop_listening,
            self._drain_runs,
            self._say_goodbye,
            self._end_applications,
            self._close,
        ):
            with error_boundary.log_errors(logger, "The server could not be drained in order"):
                await phase()

    async def _drain_runs(self) -> None:
        """Finish what is being worked on, for chats and for HTTP requests alike."""
        if self.mcp is not None:
            self.mcp.hang_up()
        if self.gateway.is_behind:
            self._read_no_more()
        requests = [
            application
            for protocol, application in self._applications()
            if not hasattr(protocol, "sendCloseFrame")
        ]
        await asyncio.gather(self.gateway.drain(DRAIN_SECONDS), _finished(requests, DRAIN_SECONDS))

    async def _say_goodbye(self) -> None:
        """Close every WebSocket with a code that applications may not use, which ASGI therefore
        cannot send."""
        for protocol in self._websockets():
            protocol.application_queue.put_nowait(
                {"type": "websocket.disconnect", "code": GOING_AWAY}
            )
            protocol.sendCloseFrame(code=GOING_AWAY, reasonUtf8=b"the server stops", isReply=False)

    def _websockets(self) -> list[Any]:
        return [
            protocol
            for protocol in self.connections
            if getattr(protocol, "application_queue", None) is not None
            and hasattr(protocol, "sendCloseFrame")
        ]

    def _read_no_more(self) -> None:
        """What clients still send could not be put on record: it stays with them."""
        for protocol in self._websockets():
            protocol.is_held = True
            protocol.transport.pauseProducing()

    async def _close(self) -> None:
        traces = asyncio.ensure_future(asyncio.to_thread(self.traces.close))
        if self.mcp is not None:
            await self.mcp.close()
        await self.gateway.close(LAST_SECONDS / 2)
        await traces
        error_boundary.flush_log_limits()

    async def _stop_listening(self) -> None:
        loop = asyncio.get_running_loop()
        for port in self._ports:
            await defer.maybeDeferred(port.stopListening).asFuture(loop)

    def _applications(self) -> list[tuple[Any, asyncio.Future[Any]]]:
        """What is running, by protocol. A connection that is a moment old has no application
        yet."""
        found = [
            (protocol, details.get("application_instance"))
            for protocol, details in self.connections.items()
        ]
        return [
            (protocol, application)
            for protocol, application in found
            if application and not application.done()
        ]

    async def _end_applications(self) -> None:
        self.callers.take_no_more()
        applications = [application for _, application in self._applications()]
        await _finished(applications, LAST_SECONDS)
        waiting = chain.from_iterable(one.application_queue._queue for one in self._websockets())
        if left := sum(event["type"] == "websocket.receive" for event in waiting):
            logger.critical("%d frames of clients were not taken in: the server ends", left)
        for application in applications:
            application.cancel()
        await asyncio.gather(*applications, return_exceptions=True)


def _end_within(seconds: float) -> None:
    """End this process after ``seconds`` in any case: a thread may hang in a call that nothing
    wakes, and the interpreter waits for threads."""
    timer = threading.Timer(seconds, _end_now, [seconds])
    timer.daemon = True
    timer.start()


def _end_now(seconds: float) -> None:
    names = ", ".join(thread.name for thread in threading.enumerate())
    logger.critical("The server did not end within %.1f s: it is ended (%s)", seconds, names)
    os._exit(1)


async def _finished(work: list[asyncio.Future[Any]], seconds: float) -> None:
    if work:
        await asyncio.wait(work, timeout=seconds)


# How many files and sockets this process may have open at a time.

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]

#: More than this is of no use, and some programs started by this one try to close every number
#: there could be.
WANTED_DESCRIPTORS = 65_536
#: Kept for the model, the database, children and their pipes, OneBot sockets and files.
RESERVED_DESCRIPTORS = 256
#: HTTP connections in all, however many descriptors there are, and however few.
MOST, LEAST = 1_000, 16


def raise_file_limit() -> None:
    """Raise the soft limit as far as the hard one allows; services are started with 1,024."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def http_connection_limit() -> int:
    """HTTP connections that leave the reserve alone; each may have a file for its body."""
    if resource is None:
        return MOST
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        MOST
        if soft == resource.RLIM_INFINITY
        else max(LEAST, min(MOST, (soft - RESERVED_DESCRIPTORS) // 2))
    )
