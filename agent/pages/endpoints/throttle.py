"""How often models are asked by hand: a test costs money, and a list can be long."""

import contextlib
import threading
from collections.abc import Iterator

from django.utils.translation import gettext as _

from tools.token_bucket import RefillRate, TokenBucket

#: Fifteen at once after a rest, and one more every four seconds.
RATE = RefillRate(15, 4.0)
#: Tests under way at once.
MOST_TESTS = 4


class HandThrottle:
    """Of one process; for the threads of its pages."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[str, TokenBucket] = {}
        self._under_way: set[int] = set()

    def refuse(self, what: str) -> str:
        """Why ``what`` is not done now, as a translated sentence; "" where it is, which counts."""
        with self._lock:
            bucket = self._buckets.setdefault(what, TokenBucket(RATE))
            is_let = bucket.take_available()
        return "" if is_let else _("This was asked for too often: wait a few seconds.")

    @contextlib.contextmanager
    def testing(self, pk: int) -> Iterator[str]:
        """Around a test of the endpoint ``pk``: why it may not begin, or ""."""
        with self._lock:
            is_free = pk not in self._under_way and len(self._under_way) < MOST_TESTS
            if is_free:
                self._under_way.add(pk)
        words = "" if is_free else _("A test is under way already: wait for its end.")
        try:
            yield words or self.refuse("test")
        finally:
            if is_free:
                with self._lock:
                    self._under_way.discard(pk)

    def forget(self) -> None:
        """As after a rest."""
        with self._lock:
            self._buckets.clear()


throttle = HandThrottle()
