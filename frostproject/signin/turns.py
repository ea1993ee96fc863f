"""Taking turns at password checks, each of which costs most of a second of a processor."""

import asyncio
from collections import deque

#: Checks at a time.
CHECKS_AT_ONCE = 2
#: Requests that wait for one, of browsers that are known and of others; for how many seconds.
MAX_WAITING = 10
PASSWORD_WAIT_SECONDS = 10.0


class PasswordQueueFull(Exception):  # noqa: N818 - an answer, not a fault
    """Too many wait already, or the turn did not come in time."""


class PasswordQueue:
    """At most :data:`CHECKS_AT_ONCE` have a turn. Who waits occupies no thread. Browsers that are
    known go first, in a line of their own."""

    def __init__(self) -> None:
        self._free = CHECKS_AT_ONCE
        self._known: deque[asyncio.Future[None]] = deque()
        self._strangers: deque[asyncio.Future[None]] = deque()

    async def acquire(self, *, is_known: bool) -> None:
        """Wait for a turn, which is held until :meth:`release`. Raises :class:`PasswordQueueFull`;
        a cancelled call holds none."""
        if self._free:
            self._free -= 1
            return
        line = self._known if is_known else self._strangers
        if len(line) >= MAX_WAITING:
            raise PasswordQueueFull
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(mine)
        try:
            async with asyncio.timeout(PASSWORD_WAIT_SECONDS):
                await mine
        except BaseException as error:
            if mine in line:
                line.remove(mine)
            elif not mine.cancelled():
                self.release()  # it came in the same moment
            if isinstance(error, TimeoutError):
                raise PasswordQueueFull from error
            raise

    def release(self) -> None:
        for line in (self._known, self._strangers):
            while line:
                following = line.popleft()
                if not following.done():
                    following.set_result(None)
                    return
        self._free += 1
