"""When a server is left alone: after failures in a row, and for how long. Pure but for its
clock."""

import random
import time
from collections.abc import Callable

FAILURE_THRESHOLD = 5
"""Calls in a row that may fail for the server's sake, not for the tool's."""
OPEN_SECONDS = 60
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""Seconds between tries to connect."""


class CircuitBreaker:
    """Lets calls pass, until so many in a row have failed; then one at a time, when the pause is
    over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._until = 0.0
        self._is_tried = False

    @property
    def seconds_left(self) -> float:
        """How long no call is let pass yet; 0 when one is."""
        return max(0.0, self._until - self._clock()) if self._failures >= FAILURE_THRESHOLD else 0.0

    def admit(self) -> bool:
        """Whether a call may be made now; each one that may has to be told to :meth:`end`."""
        if self._failures < FAILURE_THRESHOLD:
            return True
        if self.seconds_left or self._is_tried:
            return False
        self._is_tried = True
        return True

    def end(self, *, is_failure: bool | None) -> bool:
        """A call is over; None when nothing can be learned from it. True when the breaker has
        opened by it."""
        self._is_tried = False
        if is_failure is None:
            return False
        self._failures = self._failures + 1 if is_failure else 0
        if self._failures < FAILURE_THRESHOLD:
            return False
        self._until = self._clock() + OPEN_SECONDS
        return True


def retry_delay(failures: int) -> float:
    """Seconds to wait before the next try, after so many that failed: twice as long each time, and
    never the same for two."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(max(0, failures - 1), 20))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads tries, guards nothing
