"""Sockets that have sent heartbeats, and then nothing any more."""

import asyncio
from collections.abc import Callable

from onebot.connections.client import BUSY, Socket
from tools.time_limits import TIME_LIMITS

#: Of so many intervals without any frame a socket is silent, but never of fewer seconds than these.
INTERVALS, LEAST_SECONDS = 3, TIME_LIMITS.least_silence
#: How often it is looked, in seconds.
LOOK_SECONDS = TIME_LIMITS.silence_look


class SilenceWatch:
    """Tells of each such socket, once. One timer for all, while there are any. Used from one event
    loop."""

    def __init__(self, on_silent: Callable[[str, Socket], None]) -> None:
        """``on_silent`` is given the account as well."""
        self._on_silent = on_silent
        self._watched: dict[Socket, tuple[str, float]] = {}
        self._looked_at = 0.0
        """By the clock of the loop; 0 while no timer runs."""

    def hear(self, account: str, socket: Socket, interval: float | None) -> None:
        """A heartbeat has come, and says in how many seconds the next one will; 0 for never."""
        if interval is None:
            return
        if socket.link is not None and (interval == 0) == (socket in self._watched):
            socket.link.require_pongs(interval == 0)  # who never reads never answers
        self._watched[socket] = account, max(INTERVALS * interval, LEAST_SECONDS)
        if interval == 0:
            del self._watched[socket]
        elif not self._looked_at:
            self._look_later()

    def close(self) -> None:
        self._watched.clear()

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._looked_at = loop.time()
        loop.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        was_held_up, self._looked_at = now - self._looked_at > 2 * LOOK_SECONDS, 0.0
        for socket, (account, limit) in list(self._watched.items()):
            if not socket.is_open:
                del self._watched[socket]
            elif socket.silent_since == BUSY:
                continue
            elif _receives(socket) or not socket.silent_since or was_held_up:
                socket.silent_since = now  # held up: what came meanwhile is not yet read
            elif now - socket.silent_since >= limit:
                del self._watched[socket]
                self._on_silent(account, socket)
        if self._watched:
            self._look_later()


def _receives(socket: Socket) -> bool:
    """Whether anything came since the last look: a large frame takes minutes on a slow line."""
    before, socket.received = socket.received, socket.link.received if socket.link else 0
    return socket.received != before
