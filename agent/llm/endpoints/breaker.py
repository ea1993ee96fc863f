"""When an endpoint rests after failures, so that a dead one does not cost everybody its time-out.
Pure: every clock is given.

It is the circuit breaker of Nygard's "Release It!": closed, open for a while, then half open for
one try.
"""

from dataclasses import dataclass
from enum import Enum, auto

from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.errors.refusals import RefusalKind

#: Failures in a row after which an endpoint rests.
MOST_FAILURES = 3
#: Seconds of the first rest; each further one is twice as long, up to the second figure.
FIRST_REST, LONGEST_REST = 30.0, 600.0
#: Seconds of a rest after what only a person can mend.
STANDING_REST = 300.0
#: Seconds that an endpoint may ask for itself.
LONGEST_WISH = 3_600.0

#: Refusals that only a person can mend.
STANDING = frozenset(
    {
        RefusalKind.WRONG_KEY,
        RefusalKind.WRONG_REGION,
        RefusalKind.NO_MONEY,
        RefusalKind.UNKNOWN_MODEL,
        RefusalKind.WRONG_ADDRESS,
    }
)
#: Refusals, and failures of no kind, that say nothing of the request.
PASSING = frozenset({"", RefusalKind.DOWN, RefusalKind.LIMITED})


class Fault(Enum):
    """What a failed call says of its endpoint."""

    PASSING = auto()
    """It is down or limited; it may be well again soon."""
    LATE = auto()
    """It cost its whole time limit. Nobody is to pay that twice."""
    STANDING = auto()
    """No request will be answered until somebody changes something."""
    REQUEST = auto()
    """It refused this request as such; it may answer others."""


def judge_fault(error: LLMError) -> Fault:
    """What ``error`` says of the endpoint that raised it."""
    if error.kind in STANDING and not error.is_repeated:
        return Fault.STANDING
    if error.kind not in PASSING or error.is_repeated:
        return Fault.REQUEST
    is_late = isinstance(error, LLMTimeout) and error.kind != RefusalKind.LIMITED
    return Fault.LATE if is_late else Fault.PASSING


@dataclass(slots=True)
class Breaker:
    """The failures of one endpoint. Times are seconds of one clock that never goes back."""

    failures: int = 0
    rests_until: float = 0.0
    """0: it does not rest. In the past: one caller at a time tries whether it is well again."""
    rest_seconds: float = 0.0
    is_trying: bool = False

    def allows(self, now: float) -> bool:
        """Whether the endpoint is to be asked where another one could be."""
        return not self.rests_until or (now >= self.rests_until and not self.is_trying)

    def begin(self, now: float) -> bool:
        """A call begins; whether it is the one that tries out an endpoint that has rested."""
        is_try = bool(self.rests_until) and now >= self.rests_until and not self.is_trying
        self.is_trying |= is_try
        return is_try

    def end(self, *, is_try: bool) -> None:
        """A call is over, whatever it came to; ``is_try`` is what :meth:`begin` said."""
        self.is_trying &= not is_try

    def succeed(self) -> None:
        """It has answered."""
        self.failures, self.rests_until, self.rest_seconds = 0, 0.0, 0.0

    def fail(self, fault: Fault, now: float, wish: float = 0.0) -> bool:
        """It has not; whether it rests from now on, or longer. ``wish``: the seconds of its
        Retry-After."""
        if fault is Fault.REQUEST:
            return False
        self.failures += 1
        seconds = self._rest(fault, now, wish)
        if now + seconds <= max(now, self.rests_until):
            return False
        self.rests_until = now + seconds
        return True

    def _rest(self, fault: Fault, now: float, wish: float) -> float:
        if fault is Fault.STANDING:
            return STANDING_REST
        if wish > 0:
            return min(wish, LONGEST_WISH)
        is_resting = now < self.rests_until  # calls that began before do not make it rest longer
        if is_resting or (fault is Fault.PASSING and self.failures < MOST_FAILURES):
            return 0.0
        self.rest_seconds = min(2 * self.rest_seconds or FIRST_REST, LONGEST_REST)
        return self.rest_seconds
