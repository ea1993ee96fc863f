"""Which accounts are connected to this process, and by which sockets."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onebot.connections.handshake import Role

#: Application close codes are 3000 to 4999; no client distinguishes them; they help people who read
#: logs.
REPLACED, FORBIDDEN = 4009, 4003


@dataclass(eq=False, slots=True)
class Socket:
    """One accepted WebSocket of a client."""

    send: Callable[[dict[str, Any]], Awaitable[None]]
    role: Role
    user_agent: str = ""
    keys: frozenset[str] = frozenset({""})
    """What the client's token opens, see
    :class:`onebot.connections.handshake.HandshakeAccepted`."""
    is_open: bool = True
    unsupported: set[str] = field(default_factory=set)
    """Optional actions that the client has said it does not know."""
    connected_at: float = field(default_factory=time.time)
    """Unix time, to be compared with that of a socket in another process."""

    async def write(self, text: str) -> None:
        """Hand one text frame to the server; it is on its way, not arrived, when this returns."""
        await self.send({"type": "websocket.send", "text": text})

    async def close(self, code: int) -> None:
        self.is_open = False
        await self.send({"type": "websocket.close", "code": code})

    @property
    def takes_actions(self) -> bool:
        """Event sockets are not read by the clients that open them."""
        return self.role != "event"


@dataclass(slots=True)
class ConnectedAccount:
    """A connected account: at most one socket for each role."""

    sockets: dict[Role, Socket] = field(default_factory=dict)

    @property
    def action_socket(self) -> Socket | None:
        """The newest socket that actions may be written to."""
        return next(
            (
                socket
                for socket in reversed(self.sockets.values())
                if socket.takes_actions and socket.is_open
            ),
            None,
        )


class Connections:
    """The sockets of this process by account and role; the newest wins."""

    def __init__(self) -> None:
        self._accounts: dict[str, ConnectedAccount] = {}
        self._arrivals: dict[str, asyncio.Event] = {}

    @property
    def accounts(self) -> Mapping[str, ConnectedAccount]:
        return self._accounts

    def attach(self, self_id: str, socket: Socket) -> Socket | None:
        """Register ``socket``; returns the one it replaces, which the caller closes."""
        account = self._accounts.setdefault(self_id, ConnectedAccount())
        replaced = account.sockets.pop(socket.role, None)
        account.sockets[socket.role] = socket
        if socket.takes_actions and (waiting := self._arrivals.pop(self_id, None)):
            waiting.set()
        return replaced

    def detach(self, self_id: str, socket: Socket) -> bool:
        """Forget ``socket``, unless a newer one has taken its place; True if the account has none
        left."""
        account = self._accounts.get(self_id)
        if account is None:
            return False
        if account.sockets.get(socket.role) is socket:
            del account.sockets[socket.role]
        if account.sockets:
            return False
        del self._accounts[self_id]
        return True

    def action_socket(self, self_id: str) -> Socket | None:
        account = self._accounts.get(self_id)
        return account.action_socket if account else None

    async def wait(self, self_id: str, seconds: float) -> bool:
        """Wait for a socket that takes actions; True once there is one."""
        try:
            async with asyncio.timeout(seconds):
                while self.action_socket(self_id) is None:
                    await self._arrivals.setdefault(self_id, asyncio.Event()).wait()
        except TimeoutError:
            return False
        return True
