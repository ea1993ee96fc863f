"""Time limits that can stand still: what waits on purpose is not late.

A run, the tool it calls, and the run of another agent inside that tool each have a
limit of their own, one around the other. A tool that waits, for a person or for time
to pass, holds all those around it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

_around: ContextVar[tuple[asyncio.Timeout, ...]] = ContextVar("limits", default=())


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """``asyncio.timeout(seconds)`` that :func:`standing_still` holds. Raises ``TimeoutError`` when it is over."""
    async with asyncio.timeout(seconds) as limit:
        token = _around.set((*_around.get(), limit))
        try:
            yield limit
        finally:
            _around.reset(token)


@contextmanager
def standing_still() -> Iterator[None]:
    """Inside, no limit around runs out; afterwards each has the time that it had left."""
    now = asyncio.get_running_loop().time
    begun = now()
    held = [(limit, when) for limit in _around.get() if (when := limit.when()) is not None and not limit.expired()]
    for limit, _ in held:
        limit.reschedule(None)
    try:
        yield
    finally:
        for limit, when in held:
            if not limit.expired():
                limit.reschedule(when + now() - begun)
