"""Time limits that can stand still: what waits on purpose is not late.

A run, the tool it calls, and the run of another agent inside that tool each have a
limit of their own, one around the other. A tool that waits, for a person or for time
to pass, holds all those around it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_around: ContextVar[tuple["_Limit", ...]] = ContextVar("limits", default=())


@dataclass(slots=True)
class _Limit:
    """A limit that something is under; work that outlives it may still know it."""

    timeout: asyncio.Timeout
    is_over: bool = False

    def move(self, when: float | None) -> None:
        if not (self.is_over or self.timeout.expired()):
            self.timeout.reschedule(when)


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """``asyncio.timeout(seconds)`` that :func:`pause_timeouts` holds. Raises ``TimeoutError`` when
    it is over."""
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
