"""Token buckets in bounded memory that nobody can reset by filling it."""

import time
from collections.abc import Hashable
from dataclasses import dataclass

#: Keys that are remembered one by one.
MAX_BUCKETS = 10_000
#: How often it is looked which of them may be forgotten, in seconds.
SWEEP_SECONDS = 1.0
#: Whom a key is counted to while no further one can be remembered.
CROWD = object()


@dataclass(frozen=True, slots=True)
class RefillRate:
    """``burst`` tries at once, and one more every ``seconds``."""

    burst: int
    seconds: float


class TokenBuckets:
    """One bucket for each key.

    A key is forgotten only once its bucket is full again, when that changes nothing. While
    there are too many that are not, newcomers share one bucket instead of taking the place
    of another.
    """

    def __init__(self, rate: RefillRate, most: int = MAX_BUCKETS) -> None:
        self._rate, self._most = rate, most
        self._full_at: dict[Hashable, float] = {}
        self._swept_at = 0.0

    def wait(self, key: Hashable) -> float:
        """Seconds until ``key`` has a try; 0 when it has one now."""
        now = time.monotonic()
        spare = (self._rate.burst - 1) * self._rate.seconds
        return max(0.0, self._full_at.get(self._counted_to(key, now), now) - now - spare)

    def take(self, key: Hashable) -> Hashable:
        """Use up a try of ``key``; whom it was counted to, for :meth:`give_back`."""
        now = time.monotonic()
        owner = self._counted_to(key, now)
        self._full_at[owner] = max(self._full_at.get(owner, now), now) + self._rate.seconds
        return owner

    def give_back(self, owner: Hashable) -> None:
        if owner in self._full_at:
            self._full_at[owner] -= self._rate.seconds

    def _counted_to(self, key: Hashable, now: float) -> Hashable:
        if key in self._full_at or len(self._full_at) < self._most:
            return key
        if now - self._swept_at >= SWEEP_SECONDS:
            self._swept_at = now
            self._full_at = {
                each: full_at for each, full_at in self._full_at.items() if full_at > now
            }
        return key if len(self._full_at) < self._most else CROWD
