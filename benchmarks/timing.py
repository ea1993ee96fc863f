"""How long calls take: one after the other, and several at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

AT_ONCE = 8
Call = Callable[[], Awaitable[Any]]


async def timed(call: Call, count: int) -> list[float]:
    """Milliseconds of each of so many calls, one after the other."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await call()
        times.append(1000 * (time.perf_counter() - began))
    return times


async def busy(call: Call, count: int) -> float:
    """Milliseconds for a call, of so many that are made several at once."""
    began = time.perf_counter()
    await asyncio.gather(*(timed(call, count // AT_ONCE) for _ in range(AT_ONCE)))
    return 1000 * (time.perf_counter() - began) / count
