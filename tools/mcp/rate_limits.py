"""Limits how much a server may send, so that a flood from one does not slow down the others; and
pauses calls to a server that fails. Pure except for the clock."""

import asyncio
import random
import time

from tools.breaker import Breaker
from tools.token_bucket import Clock, RefillRate, TokenBucket

MESSAGES_PER_SECOND, MESSAGES_AT_ONCE = 500, 1_000
"""Of all kinds; more are read more slowly."""
UNASKED_PER_SECOND, UNASKED_AT_ONCE = 50, 200
"""Notifications and requests; more are thrown away."""
STRAYS_PER_SECOND, STRAYS_AT_ONCE = 20_000, 40_000
"""Lines that are no messages, which cost little; more are read more slowly."""
BYTES_PER_SECOND, BYTES_AT_ONCE = 32 * 2**20, 64 * 2**20
_PAUSE = 0.05
"""Seconds for which a server that is ahead is not listened to."""
FAILURE_THRESHOLD = 5
"""Calls in a row that may fail for the server's sake, not for the tool's."""
OPEN_SECONDS = 60
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""Seconds between tries to connect."""


class ServerRateLimit:
    """What one server sends."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._messages = TokenBucket(RefillRate(MESSAGES_AT_ONCE, 1 / MESSAGES_PER_SECOND), clock)
        self._unasked = TokenBucket(RefillRate(UNASKED_AT_ONCE, 1 / UNASKED_PER_SECOND), clock)
        self._bytes = TokenBucket(RefillRate(BYTES_AT_ONCE, 1 / BYTES_PER_SECOND), clock)
        self._strays = TokenBucket(RefillRate(STRAYS_AT_ONCE, 1 / STRAYS_PER_SECOND), clock)

    async def strayed(self) -> None:
        """Something has come that is no message."""
        if not self._strays.take():
            await asyncio.sleep(_PAUSE)

    async def heard(self, number: int) -> None:
        """So many bytes have come."""
        if not self._bytes.take(number):
            await asyncio.sleep(_PAUSE)

    async def passes(self, *, is_unasked: bool) -> bool:
        """Whether a message that has come is passed on."""
        if not self._messages.take():
            await asyncio.sleep(_PAUSE)
        return not is_unasked or self._unasked.take_available()


def server_breaker() -> Breaker:
    """What pauses calls to one server that fails."""
    return Breaker(FAILURE_THRESHOLD, OPEN_SECONDS, OPEN_SECONDS)


def retry_delay(failures: int) -> float:
    """Seconds to wait before the next try, after so many that failed: twice as long each time, and
    never the same for two."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(max(0, failures - 1), 20))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads tries, guards nothing
