"""Token buckets: how often something may happen, counted in the memory of this process.

The one rate limit for calls of tools, capabilities of plugins, what MCP servers send, lines of a
plugin's log, and tries to sign in.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

#: Keys that are counted one by one.
MAX_BUCKETS = 10_000
#: How often full buckets are forgotten, in seconds.
SWEEP_SECONDS = 1.0

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class RefillRate:
    """``burst`` tokens at once after a rest, and one more every ``seconds``."""

    burst: int
    seconds: float


class TokenBucket:
    """Tokens that come back with time; all are there at the start.

    ``clock`` counts monotonic seconds. ``rate`` may be replaced, and counts at once.
    """

    __slots__ = ("_at", "_clock", "_level", "rate")

    def __init__(self, rate: RefillRate, clock: Clock = time.monotonic) -> None:
        self.rate, self._clock = rate, clock
        self._level, self._at = float(rate.burst), clock()

    def is_full(self) -> bool:
        return self._level_at(self._clock()) >= self.rate.burst

    def wait_seconds(self) -> float:
        """Seconds until there is a token; 0 when there is one now."""
        return max(0.0, (1 - self._level_at(self._clock())) * self.rate.seconds)

    def take(self, amount: float = 1) -> bool:
        """Take ``amount``; False when there is not as much, and then it is owed, up to a burst."""
        now = self._clock()
        level = self._level_at(now) - amount
        self._level, self._at = max(level, -self.rate.burst), now
        return level >= 0

    def take_available(self, amount: float = 1) -> bool:
        """Take ``amount`` if it is there, and nothing otherwise."""
        return self._level_at(self._clock()) >= amount and self.take(amount)

    def give_back(self) -> None:
        """Return one token."""
        self._level += 1

    def _level_at(self, now: float) -> float:
        """Tokens that are there; fewer than none while some are owed."""
        return min(self.rate.burst, self._level + (now - self._at) / self.rate.seconds)


@dataclass(frozen=True, slots=True)
class Quota:
    """The rate for what ``key`` names."""

    key: Hashable
    rate: RefillRate

    @classmethod
    def per_minute(cls, number: int, *key: Hashable) -> "Quota":
        """``number`` at once, and as many a minute."""
        return cls(key, RefillRate(number, 60 / number))


class TokenBuckets:
    """One bucket for each key, in bounded memory; filling it does not reset other buckets.

    A key is forgotten only once its bucket is full again, when that changes nothing. While
    there are ``most`` that are not, new keys of one rate share a bucket instead of taking the
    place of another.
    """

    def __init__(self, most: int = MAX_BUCKETS, clock: Clock = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._buckets: dict[Hashable, TokenBucket] = {}
        self._swept_at = clock()

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_seconds(self, *quotas: Quota) -> float:
        """Seconds until every quota has a token; 0 when each has one now. Takes nothing."""
        return max((self._bucket(quota).wait_seconds() for quota in quotas), default=0.0)

    def take(self, *quotas: Quota) -> list[TokenBucket]:
        """Take a token of each quota; the buckets, for :meth:`TokenBucket.give_back`."""
        taken = []
        for quota in quotas:
            bucket = self._bucket(quota)
            self._buckets[self._counted_key(quota)] = bucket
            bucket.take()
            taken.append(bucket)
        return taken

    def _bucket(self, quota: Quota) -> TokenBucket:
        """The bucket that ``quota`` is counted in; a new one is remembered by :meth:`take` only."""
        bucket = self._buckets.get(self._counted_key(quota))
        if bucket is None:
            return TokenBucket(quota.rate, self._clock)
        bucket.rate = quota.rate
        return bucket

    def _counted_key(self, quota: Quota) -> Hashable:
        now = self._clock()
        if now - self._swept_at >= SWEEP_SECONDS:
            self._swept_at = now
            self._buckets = {k: each for k, each in self._buckets.items() if not each.is_full()}
        if quota.key in self._buckets or len(self._buckets) < self._most:
            return quota.key
        return quota.rate
