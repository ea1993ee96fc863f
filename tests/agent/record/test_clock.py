"""The installation's time zone in a process: from the next message on, and never for what was shown
before."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from agent.llm.requests.messages import content_text
from agent.llm.spending import CallCost, Spend, SpendScope
from agent.models import ActivitySum, Installation, Message
from agent.record.chats.chat_history import load_history
from agent.record.runs.runs import StartRun
from agent.record.sums.spendings import DatedSpend, add_spending, load_spent_tokens
from tests.agent.talk import GROUP, PLAN, PRIVATE, arrival, arrivals, begin, message
from tools.local_time import Clock, current_day, set_clock

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _machine(settings):
    settings.MACHINE_TIME_ZONE = "UTC"
    yield
    set_clock(Clock())


def choose(zone: str) -> None:
    Installation(time_zone=zone).save()


def frame(text: str) -> Any:
    return json.loads(text[text.index("{") : text.index("\n")].rpartition("}")[0] + "}")


def frames(session_pk: int, chat) -> list[str]:
    Message.objects.update(in_history=True, state="answered")
    return [content_text(one["content"]) for one in load_history(session_pk, chat, 20)]


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
def test_a_frame_keeps_the_time_that_it_was_first_shown_with(chat):
    store = arrivals()
    (first,) = store.accept_messages([arrival(message("one", chat, happened_at=NOON))])
    before = frames(first.session_pk, chat)
    for zone in ("Asia/Shanghai", "America/New_York"):
        choose(zone)
        store.accept_messages([arrival(message(zone, chat, happened_at=NOON))])
    after = frames(first.session_pk, chat)
    assert after[:1] == before
    assert [frame(one)["time"][-5:] for one in after] == ["12:00", "20:00", "07:00"]
    choose("")
    assert frames(first.session_pk, chat) == after
    assert [set(frame(one)) for one in after[1:]] == [set(frame(before[0]))] * 2


def test_the_process_obeys_the_row_from_the_next_message_on():
    store = arrivals()
    store.accept_messages([arrival(message("one"))])
    choose("Pacific/Kiritimati")
    assert str(timezone.get_current_timezone()) != "Pacific/Kiritimati"
    store.accept_messages([arrival(message("two"))])
    assert str(timezone.get_current_timezone()) == "Pacific/Kiritimati"
    assert ActivitySum.objects.filter(day=current_day(), hour=-1).exists()


def test_a_choice_that_was_rolled_back_never_counts():
    store = arrivals()
    with transaction.atomic():
        choose("Pacific/Kiritimati")
        store.accept_messages([arrival(message("one"))])
        transaction.set_rollback(True)
    store._run_starter.live.forget()
    store.accept_messages([arrival(message("two"))])
    assert str(timezone.get_current_timezone()) == "UTC"
    (run,) = begin([StartRun(PLAN)])
    assert run.run_pk


def test_tokens_of_the_day_before_the_change_still_count_on_its_day(settings):
    settings.MACHINE_TIME_ZONE = "Pacific/Niue"  # a day behind Kiritimati, always
    before = Clock().day_at(timezone.now())
    cost = Spend(CallCost(None, "m", input=70), SpendScope())
    add_spending([DatedSpend(before, cost)])
    choose("Pacific/Kiritimati")
    arrivals().accept_messages([arrival(message("one"))])
    assert current_day() > before
    add_spending([DatedSpend(current_day(), cost)])
    assert load_spent_tokens(current_day()) == 140
