"""Sums for the days before they were kept are made from rows, once."""

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.models import ActivitySum, ChatSession, Message, Run, ToolCall, ToolUse
from agent.record.record import Record
from agent.record.sums import activity_history as history
from agent.runtime.activity_filling import fill_activity
from tests.agent.databases import inside, postgres
from tests.agent.record.test_activity import CHATS, play, sums
from tests.agent.talk import accept, message
from tools.registry.settings import SettingsCache

__all__ = ["postgres"]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, db: None) -> Iterator[None]:
    if request.param == "sqlite":
        yield
        return
    with inside(request.getfixturevalue("postgres")):
        yield


def move_back(days: int) -> None:
    """Let everything that is on record have happened some days ago."""
    back = timedelta(days=days)
    for row in Message.objects.all():
        settled = row.settled_at and row.settled_at - back
        Message.objects.filter(pk=row.pk).update(
            created_at=row.created_at - back, settled_at=settled
        )
    for run in Run.objects.exclude(finished_at=None):
        Run.objects.filter(pk=run.pk).update(finished_at=run.finished_at - back)  # type: ignore[operator]
    for call in ToolCall.objects.all():
        ToolCall.objects.filter(pk=call.pk).update(created_at=call.created_at - back)


def fill() -> list[str]:
    """What the background does, without it; the days that were filled."""
    today = timezone.localdate()
    days = history.find_missing_days(today)
    for day in days:
        if day.day == today.isoformat():
            history.recount(day)
            continue
        found = history.Activity()
        for part in history.parts_of(day):
            found.merge(history.count_rows(part))
        history.put_down(day.day, found)
    return [day.day for day in days]


def rows() -> list[tuple[Any, ...]]:
    return sorted(ActivitySum.objects.order_by().values_list("day", "hour", "received", "answered"))


def test_a_day_that_is_counted_again_has_the_sums_that_were_kept(database):
    dice = random.Random(4)
    for _ in range(20):
        play(dice, dice.choice(CHATS))
    kept, uses = sums(), sorted(ToolUse.objects.values_list("tool", "calls", "failures"))
    (pk,) = Message.objects.order_by("pk").values_list("pk", flat=True)[:1]
    history.recount(history.PastDay(timezone.localdate().isoformat(), pk, pk))
    assert sums() == kept
    assert sorted(ToolUse.objects.values_list("tool", "calls", "failures")) == uses


def test_days_without_sums_are_filled_once(database):
    dice = random.Random(7)
    for _ in range(8):
        play(dice, CHATS[0])
    kept = sums()
    move_back(3)
    ActivitySum.objects.all().delete()
    ToolUse.objects.all().delete()
    accept(message("of today", message_id="t"))
    ActivitySum.objects.filter(hour__gte=0).update(received=99)  # a part, and wrong
    assert len(fill()) == 2
    past = (timezone.localdate() - timedelta(days=3)).isoformat()
    assert sums(day=past) == kept
    assert not ActivitySum.objects.filter(day=past, hour__gte=0).exists()
    assert sums(day=timezone.localdate().isoformat()) == {"received": 1, "addressed": 1}
    assert not ActivitySum.objects.filter(received=99).exists()
    assert fill() == []


def test_an_installation_that_is_new_has_nothing_to_fill(database):
    accept(message())
    assert fill() == []


def test_the_day_of_an_upgrade_is_counted_where_the_record_began_that_day(database):
    accept(message("of before", message_id="a"))
    ActivitySum.objects.all().delete()
    accept(message("of after", message_id="b"))
    assert fill() == [timezone.localdate().isoformat()]
    assert sums(day=timezone.localdate().isoformat())["received"] == 2
    assert fill() == []


def test_days_without_messages_do_not_have_the_day_of_today_counted_again(database):
    accept(message())
    move_back(2)
    fill()
    ActivitySum.objects.filter(day=timezone.localdate().isoformat()).delete()
    accept(message("of today"))
    assert fill() == []


@pytest.mark.django_db(transaction=True)
async def test_a_start_fills_them_in_the_background():
    def prepare() -> None:
        accept(message())
        move_back(1)
        ActivitySum.objects.all().delete()

    await sync_to_async(prepare)()
    record = Record("p", SettingsCache(), lambda: None)
    await fill_activity(record)
    await fill_activity(record)
    await record.close()
    assert await ActivitySum.objects.acount() == 1
    assert await ChatSession.objects.acount() == 1
