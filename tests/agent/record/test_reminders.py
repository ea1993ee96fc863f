"""Reminders on record: when they become messages, and what comes of that."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.reminders import read_fired
from agent.domain.states import Pause, PauseReason
from agent.models import ChatSession, Manners, Message, Reminder
from agent.record.reminders.book import Asker, ReminderRefused, Wish, set_reminder
from agent.record.reminders.firing import DueReminders, Firing
from agent.record.sums.quotas import AnswerQuotas
from agent.record.waiting.pauses import lift_pause, pause_chat
from agent.reminders.when import When
from tests.agent.talk import GROUP, accept, beginnings, give_owners, message

pytestmark = pytest.mark.django_db
DAILY = "FREQ=DAILY"


@pytest.fixture
def session() -> ChatSession:
    accept(message("hi", GROUP))
    return ChatSession.objects.get()


def remind(session: ChatSession, seconds: float = -1, **fields: Any) -> Reminder:
    due = timezone.now() + timedelta(seconds=seconds)
    usual = {"text": "关火", "set_by": "20001", "due_at": due}
    row: Reminder = Reminder.objects.create(session=session, **usual | fields)
    return row


def look(*owners: str, **options: Any) -> DueReminders:
    starter = beginnings()
    give_owners(starter.live, *owners)
    starter.reload_settings()
    return Firing(starter, AnswerQuotas(starter.live, 0)).fire_due({"10001"}, **options)


def fired() -> list[Message]:
    return list(Message.objects.filter(reason="reminder").order_by("pk"))


def end(row: Reminder, state: str = "answered", detail: str = "") -> Reminder:
    """Have the message of ``row`` end, and what comes of it put down."""
    row.refresh_from_db()
    assert row.fired is not None
    Message.objects.filter(pk=row.fired).update(state=state, detail=detail)
    look()
    row.refresh_from_db()
    return row


def test_what_is_due_becomes_one_message_of_its_chat(session):
    row = remind(session, mention="20002\n20003")
    assert look().accounts == {"10001"}
    look()
    (said,) = fired()
    kept = read_fired(said.raw)
    assert (said.state, said.session, said.sender_id, said.sender_name) == (
        *("waiting", session, "20001", "Ann"),
    )
    assert kept
    assert (kept.pk, kept.text, kept.mention) == (row.pk, "关火", ("20002", "20003"))
    assert end(row).state == "done"


def test_nothing_is_due_before_its_instant(session):
    row = remind(session, 60)
    found = look()
    assert (found.accounts, found.next_at) == (frozenset(), row.due_at)
    assert not fired()


def test_another_account_is_left_to_the_process_that_it_is_connected_to(session):
    ChatSession.objects.update(account="10002")
    remind(session)
    assert look() == DueReminders()


def test_without_a_reminder_nothing_is_waited_for(session):
    assert not look().is_waiting


def test_a_repeat_that_was_missed_is_one_message_and_goes_on(session):
    row = remind(session, -3 * 86_400 - 60, repeat=DAILY)
    look()
    kept = read_fired(fired()[0].raw)
    assert kept
    assert (kept.count, kept.due_at) == (4, row.due_at)
    assert end(row).state == "waiting"
    assert row.due_at > timezone.now()
    assert row.next_at == row.due_at


def test_the_next_instance_waits_until_the_one_before_is_said(session):
    row = remind(session, repeat=DAILY)
    look()
    Reminder.objects.filter(pk=row.pk).update(due_at=timezone.now())
    look()
    assert len(fired()) == 1
    end(row)
    assert len(fired()) == 2


def test_a_rule_that_has_ended_is_done(session):
    row = remind(session, -60, repeat="FREQ=DAILY;COUNT=1")
    look()
    assert end(row).state == "done"


def test_what_is_late_is_dropped_where_it_says_so(session):
    row = remind(session, -60, late="drop")
    look()
    row.refresh_from_db()
    assert (row.state, bool(row.outcome), fired()) == ("missed", True, [])


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"silenced": True}, "this chat is silenced"),
        ({"only_person": "20009"}, "only one person is answered here for now"),
    ],
)
def test_in_a_silenced_chat_it_is_missed_for_good(session, fields, outcome):
    row = remind(session)
    Manners.objects.create(name="m", **fields)
    look()
    row.refresh_from_db()
    assert (row.state, row.outcome, fired()) == ("missed", outcome, [])


def test_in_a_chat_that_is_taken_over_it_is_missed(session):
    row = remind(session)
    ChatSession.objects.update(taken_over_by="bo")
    look()
    row.refresh_from_db()
    assert (row.state, row.outcome) == ("missed", "an operator answers here")


def quiet_now() -> Manners:
    """Quiet hours that last at this moment, in a zone of their own."""
    return Manners.objects.create(
        name="m", quiet_hours="00:00-12:00\n12:00-00:00", zone="Asia/Tokyo"
    )


def test_in_quiet_hours_it_waits_until_they_end_or_are_taken_back(session):
    row, quiet = remind(session), quiet_now()
    found = look()
    assert not fired()
    assert found.next_at
    assert found.next_at > timezone.now()
    quiet.delete()
    look(afresh=True)
    assert len(fired()) == 1
    assert end(row).state == "done"


def test_in_quiet_hours_what_is_not_told_late_is_dropped(session):
    remind(session, late="drop")
    quiet_now()
    look()
    assert Reminder.objects.get().state == "missed"


def test_while_the_account_is_muted_it_waits(session):
    row = remind(session)
    pause_chat(GROUP, Pause(PauseReason.MUTED, None))
    look()
    assert not fired()
    lift_pause(GROUP)
    look()
    assert len(fired()) == 1
    assert end(row, "failed", "the account is not connected").state == "waiting"
    assert len(fired()) == 2, "it was certainly not written"


def test_a_client_that_refuses_it_makes_it_fail_with_its_words(session):
    row = remind(session)
    look()
    row = end(row, "failed", "1200: no")
    assert (row.state, row.outcome) == ("failed", "1200: no")


def test_a_task_of_somebody_who_is_not_answered_any_more_says_its_text(session):
    remind(session, kind="task")
    Manners.objects.create(name="m", denied_people="20001")
    look()
    kept = read_fired(fired()[0].raw)
    assert kept
    assert not kept.is_task


def test_limits_of_answers_are_judged_when_a_task_is_due(session):
    Manners.objects.create(name="m", person_per_day=1)
    for _ in range(2):
        remind(session, kind="task")
    look()
    kept = [read_fired(one.raw) for one in fired()]
    assert [one.is_task for one in kept if one] == [True, False]


def test_an_owner_has_no_limit(session):
    Manners.objects.create(name="m", person_per_day=1)
    for _ in range(2):
        remind(session, kind="task")
    look("20001")
    kept = [read_fired(one.raw) for one in fired()]
    assert [one.is_task for one in kept if one] == [True, True]


def test_a_year_of_missed_minutes_is_one_message(session):
    remind(session, -366 * 86_400, repeat="FREQ=MINUTELY")
    look()
    assert len(fired()) == 1


def test_the_29th_of_february_comes_in_the_next_leap_year(session):
    row = remind(session, repeat="FREQ=YEARLY", due_at=datetime(2024, 2, 29, 1, tzinfo=UTC))
    look()
    row = end(row)
    assert row.due_at.date().isoformat() == "2028-02-29"


@pytest.mark.parametrize("whom", ["20002 all", "20002\nall", "x:all", "ALL", "-1", "0", "20002x"])
def test_nobody_but_a_person_is_mentioned_whatever_a_model_writes(session: ChatSession, whom: str):
    at = When(timezone.now() + timedelta(minutes=1))
    with pytest.raises(ReminderRefused):
        set_reminder(Asker(session.pk, "20001"), Wish("hi", at, mention=[whom]))
    assert not Reminder.objects.exists()


def test_a_person_of_an_official_bot_is_mentioned_by_one_of_its_people(session: ChatSession):
    at, person = When(timezone.now() + timedelta(minutes=1)), "A1B2C3D4E5F60718293A4B5C6D7E8F90"
    row = set_reminder(Asker(session.pk, person), Wish("hi", at, mention=[person]))
    assert row.mention == person
