"""How often a tool may be called: token buckets, in the memory of this process."""

from collections.abc import Iterable
from dataclasses import dataclass

REFILL_SECONDS = 60


@dataclass(frozen=True, slots=True)
class CallQuota:
    """``per_minute`` calls for whatever ``key`` names: a tool and a person, or a tool and a
    chat."""

    key: tuple[str, ...]
    per_minute: int


class CallRates:
    """A bucket for each key: full at first and after a minute without calls, one token less with
    each call.

    ``now`` is monotonic, in seconds, and never runs backwards between calls.
    """

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, ...], tuple[float, float]] = {}
        """Tokens left and when that was, the longest unused first."""

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, quotas: Iterable[CallQuota], now: float) -> float:
        """Seconds until every quota has a call left; 0 when each has one now. Changes nothing."""
        missing = (
            (1 - self._left(quota, now)) * REFILL_SECONDS / quota.per_minute for quota in quotas
        )
        return max(0.0, max(missing, default=0.0))

    def take(self, quotas: Iterable[CallQuota], now: float) -> None:
        """Count one call against each quota."""
        for quota in quotas:
            left = self._left(quota, now)
            self._buckets.pop(quota.key, None)
            self._buckets[quota.key] = (left - 1, now)
        self._forget(now)

    def _left(self, quota: CallQuota, now: float) -> float:
        left, at = self._buckets.get(quota.key, (float(quota.per_minute), now))
        return min(quota.per_minute, left + (now - at) * quota.per_minute / REFILL_SECONDS)

    def _forget(self, now: float) -> None:
        """Drop the buckets that are full again: no bucket looks just like them."""
        while self._buckets:
            key = next(iter(self._buckets))
            if self._buckets[key][1] > now - REFILL_SECONDS:
                return
            del self._buckets[key]
