"""Token buckets: how many calls, in how much time, for whom."""

import pytest

from tools.token_bucket import Quota, RefillRate, TokenBucket, TokenBuckets

FIVE = Quota.per_minute(5, "t", "person", "1")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def buckets(clock) -> TokenBuckets:
    return TokenBuckets(clock=clock)


def taken(buckets: TokenBuckets, *quotas: Quota) -> int:
    """How many calls can be made at once."""
    count = 0
    while not buckets.wait_seconds(*quotas):
        buckets.take(*quotas)
        count += 1
    return count


def test_as_many_calls_as_the_limit_can_be_made_at_once(buckets):
    assert taken(buckets, FIVE) == 5


def test_a_call_comes_back_after_its_share_of_a_minute(buckets, clock):
    taken(buckets, FIVE)
    assert buckets.wait_seconds(FIVE) == 12.0
    clock.now += 6
    assert buckets.wait_seconds(FIVE) == 6.0
    clock.now += 6
    assert taken(buckets, FIVE) == 1
    clock.now += 24
    assert taken(buckets, FIVE) == 2


def test_a_rest_of_any_length_gives_no_more_than_the_limit(buckets, clock):
    taken(buckets, FIVE)
    clock.now += 10_000
    assert taken(buckets, FIVE) == 5


def test_looking_takes_nothing(buckets):
    for _ in range(10):
        assert buckets.wait_seconds(FIVE) == 0
    assert len(buckets) == 0


def test_what_is_given_back_is_there_again(buckets):
    taken(buckets, FIVE)
    buckets.take(FIVE)[0].give_back()
    [bucket] = buckets.take(FIVE)
    bucket.give_back()
    bucket.give_back()
    assert buckets.wait_seconds(FIVE) == 0


def test_keys_do_not_share_a_bucket(buckets):
    taken(buckets, FIVE)
    assert taken(buckets, Quota.per_minute(5, "t", "person", "2")) == 5


def test_the_scarcest_of_several_quotas_decides(buckets):
    both = (FIVE, Quota.per_minute(2, "t", "chat", "1"))
    assert taken(buckets, *both) == 2
    assert buckets.wait_seconds(*both) == 30.0
    assert taken(buckets, FIVE) == 3


def test_a_limit_that_was_lowered_counts_at_once(buckets):
    buckets.take(Quota.per_minute(100, "t"))
    assert taken(buckets, Quota.per_minute(3, "t")) == 3


def test_buckets_that_are_full_again_are_forgotten(buckets, clock):
    for number in range(1000):
        buckets.take(Quota.per_minute(5, number))
        clock.now += 0.001
    assert len(buckets) == 1000
    clock.now += 11.5
    buckets.take(FIVE)
    assert 400 < len(buckets) < 600
    clock.now += 60
    buckets.take(FIVE)
    assert len(buckets) == 1


def test_filling_the_memory_resets_nobody_and_ends_with_time(clock):
    rate = RefillRate(1, 10)
    buckets, mine, new = TokenBuckets(3, clock), Quota("mine", rate), Quota("new", rate)
    for key in ("mine", "b", "c", "d", "e"):
        buckets.take(Quota(key, rate))
    assert buckets.wait_seconds(mine) == 10
    assert buckets.wait_seconds(new) == 20  # with the others that came too late
    clock.now += 10
    assert buckets.wait_seconds(mine) == buckets.wait_seconds(Quota("b", rate)) == 0
    clock.now += 10
    assert buckets.wait_seconds(new) == 0
    for number in range(10_000):
        buckets.take(Quota(number, rate))
    assert len(buckets) <= 4


def test_what_is_refused_is_owed_only_where_it_is_taken(clock):
    bucket = TokenBucket(RefillRate(2, 1), clock)
    assert [bucket.take_available() for _ in range(4)] == [True, True, False, False]
    clock.now += 1
    assert [bucket.take() for _ in range(2)] == [True, False]
    clock.now += 1
    assert not bucket.take_available()
