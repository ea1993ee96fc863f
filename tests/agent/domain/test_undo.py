"""Who may take back how much of an answer."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.domain.chat_state import diff_states, take_back_change
from agent.domain.undo import NOT_YOURS, TOO_LATE, UndoAsker, UndoReach, judge_undo

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = UndoAsker("1", "1", UndoReach.EVERYTHING)
LEADER = UndoAsker("2", "2", UndoReach.CHAT)
ANN, BOB = UndoAsker("20001", "20001"), UndoAsker("20002", "20002")
NOBODY = UndoAsker("", "")
WORDS, CHAT, EVERYTHING = UndoReach


@pytest.mark.parametrize(
    ("asker", "seconds", "verdict"),
    [
        (OWNER, 0, EVERYTHING),
        (OWNER, 10**6, EVERYTHING),
        (LEADER, 0, CHAT),
        (LEADER, 10**6, CHAT),
        (ANN, 0, WORDS),
        (ANN, 120, WORDS),
        (ANN, 121, TOO_LATE),
        (ANN, None, WORDS),
        (BOB, 0, NOT_YOURS),
        (BOB, 121, NOT_YOURS),
        (NOBODY, 0, NOT_YOURS),
    ],
)
def test_who_may_take_an_answer_of_ann_back(
    asker: UndoAsker, seconds: int | None, verdict: UndoReach | str
):
    ended_at = None if seconds is None else NOW - timedelta(seconds=seconds)
    assert judge_undo(asker, "20001", ended_at, NOW) == verdict


def test_what_nobody_asked_for_is_not_for_who_is_nobody():
    assert judge_undo(NOBODY, "", NOW, NOW) == NOT_YOURS


@pytest.mark.parametrize(
    ("before", "after", "now", "restored", "is_whole"),
    [
        ({}, {"a": 1}, {"a": 1}, {}, True),
        ({"a": 1}, {"a": 2}, {"a": 2, "b": 3}, {"a": 1, "b": 3}, True),
        ({"a": 1}, {}, {}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 3}, False),
        ({"a": 1}, {}, {"a": 9}, {"a": 9}, False),
        ({"a": 1}, {"a": True, "b": 1}, {"a": True, "b": 2}, {"a": 1, "b": 2}, False),
        ({}, {"a": None}, {"a": None}, {}, True),
        ({}, {"a": 1}, {}, {}, False),
    ],
)
def test_a_state_is_as_it_was_but_for_what_was_changed_since(
    before: dict, after: dict, now: dict, restored: dict, is_whole: bool
):
    change = diff_states(7, before, after)
    assert take_back_change(now, change.before, change.values) == (restored, is_whole)
