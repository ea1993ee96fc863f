"""How often an endpoint is asked, and how often at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tools.token_bucket import RefillRate, TokenBucket


class RequestPacer:
    """Lets requests through in the order in which they come: ``at_once`` at a time, and
    ``per_minute``; 0 is no limit.

    Waiting is limited by the time of the call that waits; a cancelled one leaves its place.
    """

    def __init__(self, at_once: int, per_minute: int) -> None:
        self._places = asyncio.Semaphore(at_once) if at_once > 0 else None
        rate = RefillRate(per_minute, 60 / per_minute) if per_minute > 0 else None
        self._bucket = TokenBucket(rate) if rate else None
        self._next = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until one more request may be made, and hold its place while it is."""
        if self._places is None:
            await self._take()
            yield
            return
        async with self._places:
            await self._take()
            yield

    async def _take(self) -> None:
        if self._bucket is None:
            return
        async with self._next:
            if seconds := self._bucket.wait_seconds():
                await asyncio.sleep(seconds)
            self._bucket.take()
