"""When an endpoint rests after failures: how each kind of fault counts. Pure."""

from enum import Enum, auto

from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.errors.refusals import RefusalKind
from tools.breaker import Breaker

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


def endpoint_breaker() -> Breaker:
    """The breaker of one endpoint."""
    return Breaker(MOST_FAILURES, FIRST_REST, LONGEST_REST)


def count_fault(breaker: Breaker, fault: Fault, now: float, wish: float = 0.0) -> bool:
    """Whether the endpoint rests from now on, or longer; ``wish``: the seconds of its
    Retry-After."""
    if fault is Fault.REQUEST:
        return False
    seconds = STANDING_REST if fault is Fault.STANDING else max(0.0, min(wish, LONGEST_WISH))
    return breaker.fail(now, seconds=seconds, at_once=fault is Fault.LATE)
