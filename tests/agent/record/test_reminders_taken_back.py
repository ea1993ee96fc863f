"""Reminders that are again as they were before a call changed or cancelled them."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone, translation

from agent.models import ChatSession, Reminder, ToolCall
from agent.record.reminders import book
from tests.admin.record import call_of, chat, run_for, said, step_of
from tests.agent.record.test_reminders import fired, look, remind

pytestmark = pytest.mark.django_db
OWNERS = frozenset({"1"})


@pytest.fixture
def session() -> ChatSession:
    return chat("30001")


def recorded(row: Reminder, tool: str, before: dict[str, str]) -> ToolCall:
    kept = json.loads(json.dumps(book.keep_change(row, before)))
    run = run_for(said(row.session))
    return call_of(step_of(run), tool, structured_content=kept)


def changed(row: Reminder, **fields: Any) -> ToolCall:
    """The call that has changed ``row``."""
    asker = book.Asker(row.session_id, row.set_by, zone="Asia/Shanghai")
    before = book.note_down(book.find_open(asker, row.pk))
    return recorded(book.change_reminder(asker, row.pk, **fields), "change_reminder", before)


def cancelled(row: Reminder) -> ToolCall:
    row.refresh_from_db()
    before = book.note_down(row)
    return recorded(book.cancel(row), "cancel_reminder", before)


def take_back(call: ToolCall) -> None:
    with translation.override("en"):
        book.take_back(call.run.session_id or 0, call.pk, OWNERS)


def values(row: Reminder) -> Any:
    return Reminder.objects.values().get(pk=row.pk)


@pytest.mark.parametrize("repeat", ["", "FREQ=DAILY"])
@pytest.mark.parametrize(
    "change",
    [
        {"text": "喝茶"},
        {"when": "PT2H"},
        {"repeat": "FREQ=WEEKLY;BYDAY=MO"},
        {"text": "喝茶", "when": "PT2H", "repeat": ""},
    ],
)
def test_a_changed_reminder_is_as_it_was_once(session, repeat, change):
    row = remind(session, 3_600, repeat=repeat)
    before = values(row)
    call = changed(row, **change)
    assert values(row) != before
    take_back(call)
    assert values(row) == before
    with pytest.raises(book.ReminderRefused, match="changed since"):
        take_back(call)
    assert values(row) == before


def test_what_its_rule_has_said_meanwhile_changes_nothing(session):
    row = remind(session, 3_600)
    before = values(row)
    call = changed(row, when="PT1M", repeat="FREQ=DAILY")
    row.refresh_from_db()
    Reminder.objects.filter(pk=row.pk).update(due_at=row.due_at + timedelta(days=1))
    take_back(call)
    assert values(row) == before


def test_what_somebody_else_changed_since_stays(session):
    row = remind(session, 3_600)
    call = changed(row, when="PT2H")
    Reminder.objects.filter(pk=row.pk).update(text="喝茶")
    take_back(call)
    row.refresh_from_db()
    assert (row.text, row.due_at < timezone.now() + timedelta(hours=2)) == ("喝茶", True)
    again = changed(row, text="喝水")
    changed(row, text="喝酒")
    with pytest.raises(book.ReminderRefused, match="changed since"):
        take_back(again)


@pytest.mark.parametrize("state", ["waiting", "paused"])
def test_a_cancelled_reminder_waits_again_as_it_did(session, state):
    row = remind(session, 3_600, state=state)
    before = values(row)
    call = cancelled(row)
    take_back(call)
    assert values(row) == before


@pytest.mark.parametrize(("late", "said"), [("tell", 1), ("drop", 0)])
def test_what_fell_due_meanwhile_is_late(session, late, said):
    row = remind(session, -60, late=late)
    call = cancelled(row)
    look()
    assert not fired()
    take_back(call)
    look()
    look()
    assert len(fired()) == said
    row.refresh_from_db()
    assert row.state == ("waiting" if said else "missed")


def test_a_cancelled_one_comes_back_within_the_limits_of_its_person(session):
    mine, owners = remind(session, 3_600), remind(session, 3_600, set_by="1")
    calls = cancelled(mine), cancelled(owners)
    for row in (mine, owners):
        for _ in range(20):
            remind(session, 3_600, set_by=row.set_by)
    with pytest.raises(book.ReminderRefused, match="20 reminders"):
        take_back(calls[0])
    take_back(calls[1])
    assert (values(mine)["state"], values(owners)["state"]) == ("cancelled", "waiting")


def test_what_was_being_said_is_gone_or_is_of_another_chat_stays(session):
    row = remind(session)
    look()
    others = [remind(session, 3_600) for _ in range(3)]
    calls = [cancelled(row), *(changed(one, text="喝茶") for one in others)]
    over, moved, gone = others
    Reminder.objects.filter(pk=over.pk).update(state="done")
    Reminder.objects.filter(pk=moved.pk).update(session=chat("9"))
    gone.delete()
    before = list(Reminder.objects.values())
    for call in calls:
        with pytest.raises(book.ReminderRefused):
            take_back(call)
    assert list(Reminder.objects.values()) == before


def test_what_the_same_answer_has_set_is_not_said_in_between(session):
    row = remind(session, -60)
    call = cancelled(row)
    Reminder.objects.update(created_at=timezone.now())
    take_back(call)
    look()
    assert (fired(), values(row)["state"]) == ([], "cancelled")
