"""A clock that is ahead is told from messages that a client has kept while it was away."""

import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.utils import timezone

from agent.models import Message
from agent.record.ground.clock_skew import ClockWatch, find_clock_skew
from tests.admin.record import chat, said

pytestmark = pytest.mark.django_db


def hear(pairs: Sequence[tuple[int, int]]) -> None:
    """Messages that came, and were said, so many seconds ago."""
    session, now = chat(), timezone.now()
    for came, happened in pairs:
        row = said(session, state="expired", reason="too_old")
        Message.objects.filter(pk=row.pk).update(
            created_at=now - timedelta(seconds=came), happened_at=now - timedelta(seconds=happened)
        )


def test_messages_of_one_age_that_come_one_after_the_other_are_live():
    hear([(90, 490), (40, 441), (0, 400)])
    skew = find_clock_skew()
    assert skew is not None
    assert skew.total_seconds() == pytest.approx(400)


@pytest.mark.parametrize(
    "pairs",
    [
        [(90, 490), (0, 400)],
        [(2, 900), (1, 600), (0, 400)],
        [(90, 490), (40, 441), (0, 900)],
        [(5000, 5400), (4950, 5350), (4900, 5300)],
    ],
    ids=["two", "kept", "one-kept", "long-ago"],
)
def test_others_say_nothing_of_the_clock(pairs: Sequence[tuple[int, int]]):
    hear(pairs)
    assert find_clock_skew() is None


def test_the_log_says_it_once_and_an_answer_ends_it(caplog: pytest.LogCaptureFixture):
    hear([(90, 490), (40, 440), (0, 400)])
    watch = ClockWatch()
    with caplog.at_level(logging.WARNING):
        assert [watch.look() for _ in range(2)] == [False, False]
    assert [one.getMessage()[:27] for one in caplog.records] == ["Messages are 6 minutes old "]
    said(Message.objects.latest("pk").session, state="answered", happened_at=timezone.now())
    assert watch.look()
