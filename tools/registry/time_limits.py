"""Time limits that can be paused: a wait on purpose does not count.

A run, the tool it calls, and the run of another agent inside that tool each have a limit of their
own, nested. A tool that waits, for a person or for a time, pauses all limits around it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_around: ContextVar[tuple["_Limit", ...]] = ContextVar("limits", default=())


@dataclass(slots=True)
class _Limit:
    """A limit that applies to some work; work that runs on after it may still hold it."""

    timeout: asyncio.Timeout
    is_over: bool = False

    def move(self, when: float | None) -> None:
        if not (self.is_over or self.timeout.expired()):
            self.timeout.reschedule(when)


@asynccontextmanager
async def time_limit(seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
    """``asyncio.timeout(seconds)`` that :func:`pause_timeouts` holds. Raises ``TimeoutError`` when
    it is over; None is no limit."""
    async with asyncio.timeout(seconds) as timeout:
        limit = _Limit(timeout)
        token = _around.set((*_around.get(), limit))
        try:
            yield timeout
        finally:
            limit.is_over = True
            _around.reset(token)


@contextmanager
def pause_timeouts() -> Iterator[None]:
    """Inside, no limit around runs out; afterwards each has the time that it had left."""
    now = asyncio.get_running_loop().time
    begun = now()
    held = [(limit, when) for limit in _around.get() if (when := limit.timeout.when()) is not None]
    for limit, _ in held:
        limit.move(None)
    try:
        yield
    finally:
        for limit, when in held:
            limit.move(when + now() - begun)
