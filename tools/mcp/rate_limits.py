"""How fast a server may talk: what one floods costs the others nothing."""

import asyncio
import time
from collections.abc import Callable

MESSAGES_PER_SECOND, MESSAGES_AT_ONCE = 500, 1_000
"""Of all kinds; more are read more slowly."""
UNASKED_PER_SECOND, UNASKED_AT_ONCE = 50, 200
"""Notifications and requests; more are thrown away."""
STRAYS_PER_SECOND, STRAYS_AT_ONCE = 20_000, 40_000
"""Lines that are no messages, which cost little; more are read more slowly."""
BYTES_PER_SECOND, BYTES_AT_ONCE = 32 * 2**20, 64 * 2**20
_PAUSE = 0.05
"""Seconds for which a server that is ahead is not listened to."""

Clock = Callable[[], float]


class TokenBucket:
    """What may pass: ``rate`` a second, and ``burst`` at once after a rest."""

    def __init__(self, rate: float, burst: float, clock: Clock = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._level, self._at = float(burst), clock()

    def take(self, amount: float = 1) -> bool:
        """Take ``amount``; False when there is not as much, and then it is owed."""
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate) - amount
        self._at = now
        if self._level >= 0:
            return True
        self._level = max(self._level, -self._burst)
        return False

    def has(self, amount: float = 1) -> bool:
        """Take ``amount`` if it is there, and nothing otherwise."""
        if self.take(amount):
            return True
        self._level += amount
        return False


class ServerRateLimit:
    """What one server sends."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._messages = TokenBucket(MESSAGES_PER_SECOND, MESSAGES_AT_ONCE, clock)
        self._unasked = TokenBucket(UNASKED_PER_SECOND, UNASKED_AT_ONCE, clock)
        self._bytes = TokenBucket(BYTES_PER_SECOND, BYTES_AT_ONCE, clock)
        self._strays = TokenBucket(STRAYS_PER_SECOND, STRAYS_AT_ONCE, clock)

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
        return not is_unasked or self._unasked.has()
