"""When an endpoint rests."""

import pytest

from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.endpoints.endpoint_pool import Fault, count_fault, endpoint_breaker, judge_fault
from agent.llm.errors.refusals import RefusalKind
from tools.breaker import Breaker


def failed(breaker: Breaker, now: float, fault: Fault = Fault.PASSING, times: int = 1) -> Breaker:
    for _ in range(times):
        breaker.end(is_try=breaker.begin(now))
        count_fault(breaker, fault, now)
    return breaker


def test_it_rests_after_three_failures_in_a_row():
    breaker = failed(endpoint_breaker(), 0, times=2)
    assert breaker.allows(0)
    breaker.succeed()
    assert failed(breaker, 0, times=2).allows(0)
    assert not failed(breaker, 0).allows(29)
    assert breaker.allows(30)


def test_each_rest_is_twice_as_long_up_to_ten_minutes():
    breaker, now, rests = failed(endpoint_breaker(), 0, times=2), 0.0, []
    for _ in range(7):
        failed(breaker, now)
        rests.append(breaker.rests_until - now)
        now = breaker.rests_until
    assert rests == [30, 60, 120, 240, 480, 600, 600]


def test_after_a_rest_one_caller_tries_and_the_others_go_on():
    breaker = failed(endpoint_breaker(), 0, times=3)
    assert breaker.begin(30)
    assert not breaker.allows(30)
    breaker.end(is_try=True)  # cancelled: the next one tries
    assert breaker.allows(30)


def test_calls_that_began_before_do_not_make_it_rest_longer():
    assert failed(endpoint_breaker(), 0, times=30).rests_until == 30


def test_a_late_one_rests_at_once_and_a_wrong_key_for_five_minutes():
    assert failed(endpoint_breaker(), 0, Fault.LATE).rests_until == 30
    assert failed(endpoint_breaker(), 0, Fault.STANDING).rests_until == 300


def test_what_an_endpoint_wishes_for_is_obeyed_and_nothing_shortens_a_rest():
    breaker = endpoint_breaker()
    assert count_fault(breaker, Fault.PASSING, 0, wish=7)
    assert breaker.rests_until == 7
    assert not count_fault(failed(breaker, 0, Fault.STANDING), Fault.PASSING, 0, wish=7)
    assert breaker.rests_until == 300


@pytest.mark.parametrize(
    ("error", "kind", "fault"),
    [
        (LLMError("x"), "", Fault.PASSING),
        (LLMError("x"), RefusalKind.DOWN, Fault.PASSING),
        (LLMTimeout("x"), "", Fault.LATE),
        (LLMTimeout("x"), RefusalKind.LIMITED, Fault.PASSING),
        (LLMError("x"), RefusalKind.NO_MONEY, Fault.STANDING),
        (LLMError("x"), RefusalKind.WRONG_ADDRESS, Fault.STANDING),
        (LLMError("x"), RefusalKind.CONTENT_FILTER, Fault.REQUEST),
        (LLMError("x"), RefusalKind.TOO_LONG, Fault.REQUEST),
        (LLMError("x"), RefusalKind.OTHER, Fault.REQUEST),
    ],
)
def test_what_an_error_says_of_its_endpoint(error: LLMError, kind: str, fault: Fault):
    error.kind = kind
    assert judge_fault(error) is fault
    refused = failed(endpoint_breaker(), 0, Fault.REQUEST, times=5)
    assert refused.allows(0)
