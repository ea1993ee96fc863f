"""The OneBot WebSocket: one consumer for each connected client.

It reads its socket itself instead of leaving that to Channels' dispatch, which closes
old database connections in a thread around every frame and costs three times as much
as all the rest. Routing, scope and middleware stay Channels'.

The receive loop parses, resolves an echo, or hands over. It never waits for the agent
or for an answer on its own socket, which only it could read.

The WebSocket addresses: one for all roles, and two for clients that open two sockets.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from channels.consumer import AsyncConsumer
from channels.routing import URLRouter
from django.urls import URLPattern, re_path

from agent.domain.types import is_playground
from onebot.connections.client import BUSY, FORBIDDEN, LINK_KEY, Link, Socket
from onebot.connections.handshake import (
    CHECK_AGENT,
    Handshake,
    HandshakeAccepted,
    HandshakeRefused,
    PlaygroundDoor,
    account_refusal,
    judge_handshake,
    refused_clients,
)
from onebot.gateway.gateway import Gateway
from onebot.protocol.actions import ActionResponse
from onebot.protocol.events import Event
from onebot.protocol.frames import MalformedFrame, decode_frame, shrink_frame
from tools.error_boundary import LogLimit, capture_error
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)


# Closing the socket of a playground once its user may use it no more.

#: How often it is asked whether a socket may stay open, in seconds.
CHECK_SECONDS = TIME_LIMITS.playground_check


async def is_open(door: PlaygroundDoor, account: str, handshake: Handshake) -> bool:
    """Whether a browser may speak for ``account`` now; False too where nobody knows."""
    return await _ask(door, account, handshake) is True


async def watch(
    door: PlaygroundDoor, account: str, handshake: Handshake, close: Callable[[], Awaitable[None]]
) -> None:
    """Ask again and again, and ``close`` once it may not. While the database cannot be read, what
    it said last counts."""
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        if await _ask(door, account, handshake) is False:
            logger.info("Closed playground %s: its user may use it no more", account)
            await close()
            return


async def _ask(door: PlaygroundDoor, account: str, handshake: Handshake) -> bool | None:
    with capture_error() as attempt:
        return await door.is_open(account, handshake)
    logger.warning("Whether playground %s may be open is not known: %s", account, attempt.error)
    return None


#: Frames larger than this are cut and decoded in a thread, so that other sockets are read
#: meanwhile.
LARGE_FRAME_BYTES = 2**18

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

limit = LogLimit(logger)


class OneBotConsumer(AsyncConsumer):  # type: ignore[misc]  # Channels has no types
    """Speaks OneBot 11 with one client. ``gateway`` is shared by all of them."""

    gateway: Gateway

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.self_id = ""
        self._name = ""
        self._is_settled = False
        """Whether an event has said whose socket it is."""
        self.socket: Socket | None = None
        self._link: Link | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        handshake = Handshake.from_scope(scope)
        self._link = scope.get(LINK_KEY)
        verdict = judge_handshake(handshake, self.gateway.admission)
        if isinstance(verdict, HandshakeRefused):
            if handshake.headers.get("user-agent") != CHECK_AGENT:
                refused_clients.note(handshake.peer, verdict.reason)
            limit.warn(
                (handshake.peer, verdict.reason),
                "Refused a client at %s: %s",
                handshake.peer,
                verdict.reason,
            )
            await send({"type": "websocket.close"})
            return
        await send({"type": "websocket.accept"})
        if is_playground(verdict.self_id):
            await self._serve_playground(verdict, handshake, receive, send)
        else:
            await self.serve(verdict, receive, send)

    async def _serve_playground(
        self, client: HandshakeAccepted, handshake: Handshake, receive: Receive, send: Send
    ) -> None:
        """The same for a browser, for as long as its user may use the playground."""
        door = self.gateway.admission.playground
        if not await is_open(door, client.self_id, handshake):
            await send({"type": "websocket.close", "code": FORBIDDEN})
            return

        async def close() -> None:
            if self.socket is not None:
                await self.socket.close(FORBIDDEN)

        watching = asyncio.create_task(
            watch(door, client.self_id, handshake, close), name="playground-watch"
        )
        try:
            await self.serve(client, receive, send)
        finally:
            watching.cancel()

    async def serve(self, client: HandshakeAccepted, receive: Receive, send: Send) -> None:
        """Read the socket until it ends, one way or another."""
        self.socket = socket = Socket(send, client.role, client.user_agent, client.keys)
        socket.link = self._link
        self._name = client.name
        follower = (client.name, self._identify)
        if client.role == "api":  # no event will ever say whose it is
            self.gateway.followers.add(follower)
        try:
            if client.self_id:
                await self._identify(client.self_id)
            while (message := await receive())["type"] == "websocket.receive":
                socket.silent_since = BUSY
                # Taken out: nothing but its decoding shall hold a large frame.
                await self._on_frame(message.pop("text", None) or message.pop("bytes", None) or "")
                socket.silent_since = 0.0
        finally:
            self.gateway.followers.discard(follower)
            if self.self_id:
                self.gateway.detach(self.self_id, socket)

    async def _on_frame(self, data: str | bytes) -> None:
        frame: Event | ActionResponse | MalformedFrame
        if len(data) > LARGE_FRAME_BYTES:
            size = len(data)
            small = await asyncio.to_thread(shrink_frame, data, self.gateway.keep)
            del data  # before the small one is decoded, in what room is left
            frame = (
                small
                if isinstance(small, MalformedFrame)
                else await asyncio.to_thread(decode_frame, small, size)
            )
        else:
            frame = decode_frame(data)
        if isinstance(frame, MalformedFrame):
            limit.warn(
                (self.self_id, frame.reason),
                "Account %s sent a bad frame (%s): %s",
                self.self_id,
                frame.reason,
                frame.excerpt,
            )
        elif isinstance(frame, ActionResponse):
            await self.gateway.on_response(self.self_id, frame)
        elif await self._is_own(frame.self_id):
            await self.gateway.on_event(self.self_id, frame, self.socket)

    async def _is_own(self, self_id: str) -> bool:
        """Whether an event of ``self_id`` may come over this socket; the first one settles whose it
        is, whatever the client called itself."""
        if not self._is_settled and self_id not in ("", "0"):
            return await self._settle(self_id)
        if self.self_id and self_id in (self.self_id, ""):
            return True
        limit.warn(
            (self.self_id, "self_id", self_id[:32]),
            "Account %s sent an event of account %r; it is ignored",
            self.self_id,
            self_id[:32],
        )
        return False

    async def _settle(self, self_id: str) -> bool:
        if not await self._identify(self_id):
            return False
        self._is_settled = True
        if self._name:
            await self.gateway.name_account(self_id, self._name)
        return True

    async def _identify(self, self_id: str) -> bool:
        """Whether this socket is ``self_id``'s from now on; it is closed where the client's token
        is not that account's."""
        assert self.socket is not None  # noqa: S101 - set before anything is read
        if not self.socket.is_open or self_id == self.self_id:
            return self.socket.is_open
        if refusal := account_refusal(self_id, self.socket.keys, self.gateway.admission.accounts):
            refused_clients.note("", refusal)
            limit.warn(("account", self_id), "Closed a connection: %s", refusal)
            await self.socket.close(FORBIDDEN)
            return False
        if self.self_id:
            self.gateway.leave(self.self_id, self.socket)
        self.self_id = self_id
        await self.gateway.attach(self_id, self.socket)
        return True


async def refuse_websocket(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """A WebSocket on a path that is none: refused like any other."""
    await receive()
    path, peer = str(scope.get("path", ""))[:100], Handshake.from_scope(scope).peer
    refused_clients.note(peer, f"there is no WebSocket at {path}; use /ws/frostagent")
    limit.warn(
        ("path", peer),
        "Refused a client at %s: there is no WebSocket at %s; use /ws/frostagent",
        peer,
        path,
    )
    await send({"type": "websocket.close"})


def websocket_routes(gateway: Gateway, others: Sequence[URLPattern] = ()) -> URLRouter:
    """The clients' addresses, and ``others``; everything else is refused."""
    consumer = OneBotConsumer.as_asgi(gateway=gateway)
    return URLRouter(
        [
            asgi_route(r"^ws/frostagent(?:/(?:api|event))?/?$", consumer),
            *others,
            asgi_route(r"", refuse_websocket),
        ]
    )


def asgi_route(pattern: str, application: Any) -> URLPattern:
    """A route to an ASGI application, where Django expects a view."""
    found: URLPattern = re_path(pattern, application)
    return found
