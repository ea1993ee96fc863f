"""Whether a failed request is made again, and when: the openai library's own rules. Pure but for
clock and chance.

https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Retry-After
"""

import email.utils
import math
import random
import time
from collections.abc import Mapping
from typing import NamedTuple

from agent.llm.errors.failures import FailedTry
from agent.llm.errors.refusals import RefusalKind

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between tries if the endpoint names none: doubled with each try, and up to a quarter
less."""
PASSING = (408, 409, 429)
"""Statuses that may pass on the next try, apart from 500 and above."""
PASSING_KINDS = (RefusalKind.LIMITED, RefusalKind.DOWN, RefusalKind.OTHER)
"""What such a status may mean then: some endpoints say "no money" with the same one."""


class RetryPause(NamedTuple):
    """Seconds until the next try, and whether the endpoint named them."""

    seconds: float
    is_wished: bool = False


QUICK_PAUSE = 1.0
"""Seconds that are waited at most where another endpoint can be asked instead."""


def compute_retry_pause(failure: FailedTry, tries: int) -> RetryPause | None:
    """How long to wait after ``tries`` of which the last was ``failure``; None where another is of
    no use."""
    if failure.status:
        if not _may_pass(failure):
            return None
        if wish := parse_retry_after(failure.headers):
            return RetryPause(wish, is_wished=True)
    elif failure.is_late:
        return None
    return RetryPause(
        min(FIRST_PAUSE * 2 ** (tries - 1), LONGEST_PAUSE) * (1 - 0.25 * random.random())  # noqa: S311 - jitter
    )


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """What ``Retry-After`` and its like say; None where they say nothing that can be waited for."""
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / divisor
        except (KeyError, ValueError):
            continue
        return seconds if seconds > 0 else None
    try:
        seconds = (
            email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp()
            - time.time()
        )
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds > 0 and math.isfinite(seconds) else None


def _may_pass(failure: FailedTry) -> bool:
    match failure.headers.get("x-should-retry"):
        case "true":
            return True
        case "false":
            return False
        case _:
            is_passing = failure.status in PASSING or failure.status >= 500
            return is_passing and failure.kind in PASSING_KINDS
