"""Token buckets: how many calls, in how much time, for whom."""

from tools.registry.rate import CallQuota, CallRates

FIVE = (CallQuota(("t", "person", "1"), 5),)


def taken(rates: CallRates, quotas: tuple[CallQuota, ...], now: float) -> int:
    """How many calls can be made at once."""
    count = 0
    while not rates.wait(quotas, now):
        rates.take(quotas, now)
        count += 1
    return count


def test_as_many_calls_as_the_limit_can_be_made_at_once():
    assert taken(CallRates(), FIVE, 100.0) == 5


def test_a_call_comes_back_after_its_share_of_a_minute():
    rates = CallRates()
    taken(rates, FIVE, 100.0)
    assert rates.wait(FIVE, 100.0) == 12.0
    assert rates.wait(FIVE, 106.0) == 6.0
    assert taken(rates, FIVE, 112.0) == 1
    assert taken(rates, FIVE, 136.0) == 2


def test_a_rest_of_any_length_gives_no_more_than_the_limit():
    rates = CallRates()
    taken(rates, FIVE, 100.0)
    assert taken(rates, FIVE, 10_000.0) == 5


def test_looking_takes_nothing():
    rates = CallRates()
    for _ in range(10):
        assert rates.wait(FIVE, 100.0) == 0
    assert len(rates) == 0


def test_keys_do_not_share_a_bucket():
    rates = CallRates()
    taken(rates, FIVE, 100.0)
    assert taken(rates, (CallQuota(("t", "person", "2"), 5),), 100.0) == 5


def test_the_scarcest_of_several_quotas_decides():
    both = (*FIVE, CallQuota(("t", "chat", "1"), 2))
    rates = CallRates()
    assert taken(rates, both, 100.0) == 2
    assert rates.wait(both, 100.0) == 30.0
    assert taken(rates, FIVE, 100.0) == 3


def test_a_limit_that_was_lowered_counts_at_once():
    rates = CallRates()
    rates.take((CallQuota(("t",), 100),), 100.0)
    assert taken(rates, (CallQuota(("t",), 3),), 100.0) == 3


def test_buckets_that_are_full_again_are_forgotten():
    rates = CallRates()
    for number in range(1000):
        rates.take((CallQuota((str(number),), 5),), 100.0 + number / 1000)
    rates.take(FIVE, 160.5)
    assert len(rates) < 510
    rates.take(FIVE, 300.0)
    assert len(rates) == 1


def test_a_bucket_in_use_does_not_keep_the_others():
    rates, other = CallRates(), (CallQuota(("t", "person", "2"), 5),)
    rates.take(FIVE, 100.0)
    rates.take(other, 110.0)
    rates.take(FIVE, 159.0)
    rates.take(FIVE, 171.0)
    assert len(rates) == 1
