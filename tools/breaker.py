"""When something outside is left alone after failures, so that a dead one does not cost everybody
its time-out. Pure: every clock is given.

It is the circuit breaker of Nygard's "Release It!": closed, open for a while, then half open for
one try.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Breaker:
    """The failures of one place that is asked. Times are seconds of one clock that never goes back.

    After ``most_failures`` in a row it rests, ``first_rest`` seconds first and twice as long each
    time after, up to ``longest_rest``.
    """

    most_failures: int
    first_rest: float
    longest_rest: float
    failures: int = 0
    rests_until: float = 0.0
    """0: it does not rest. In the past: one caller at a time tries whether it is well again."""
    rest_seconds: float = 0.0
    is_trying: bool = False

    def allows(self, now: float) -> bool:
        """Whether it is to be asked."""
        return not self.rests_until or (now >= self.rests_until and not self.is_trying)

    def seconds_left(self, now: float) -> float:
        """How long it rests yet; 0 where it does not."""
        return max(0.0, self.rests_until - now)

    def begin(self, now: float) -> bool:
        """A call begins; whether it is the one that tries out a place that has rested."""
        is_try = bool(self.rests_until) and now >= self.rests_until and not self.is_trying
        self.is_trying |= is_try
        return is_try

    def end(self, *, is_try: bool) -> None:
        """A call is over, whatever it came to; ``is_try`` is what :meth:`begin` said."""
        self.is_trying &= not is_try

    def succeed(self) -> None:
        """It has answered."""
        self.failures, self.rests_until, self.rest_seconds = 0, 0.0, 0.0

    def fail(self, now: float, *, seconds: float = 0.0, at_once: bool = False) -> bool:
        """It has not; whether it rests from now on, or longer. ``seconds``: of a rest that is known
        beforehand; ``at_once``: without waiting for further failures."""
        self.failures += 1
        is_resting = now < self.rests_until  # calls that began before do not make it rest longer
        if not seconds and not is_resting and (at_once or self.failures >= self.most_failures):
            self.rest_seconds = min(2 * self.rest_seconds or self.first_rest, self.longest_rest)
            seconds = self.rest_seconds
        if now + seconds <= max(now, self.rests_until):
            return False
        self.rests_until = now + seconds
        return True
