"""Sums for the days before they were kept are made from rows, once, by a migration."""

import importlib
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from agent.models import ActivitySum, Message, Run, ToolCall, ToolUse
from tests.agent.databases import inside, postgres
from tests.agent.record.test_activity import CHATS, play, sums
from tests.agent.talk import accept, message

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


def fill() -> None:
    """What the migration does."""
    node = ("agent", "0018_sums_of_earlier_days")
    before = MigrationLoader(None).project_state(node, at_end=False)
    importlib.import_module(".".join(("agent", "migrations", node[1]))).fill_days(before.apps, None)


def rows() -> list[tuple[Any, ...]]:
    return sorted(ActivitySum.objects.order_by().values_list("day", "hour", "received", "answered"))


def test_a_day_that_is_counted_again_has_the_sums_that_were_kept(database):
    dice = random.Random(4)
    for _ in range(20):
        play(dice, dice.choice(CHATS))
    kept, uses = sums(), sorted(ToolUse.objects.values_list("tool", "calls", "failures"))
    fill()
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
    fill()
    past = (timezone.localdate() - timedelta(days=3)).isoformat()
    assert sums(day=past) == kept
    assert not ActivitySum.objects.filter(day=past, hour__gte=0).exists()
    assert sums(day=timezone.localdate().isoformat()) == {"received": 1, "addressed": 1}
    assert not ActivitySum.objects.filter(received=99).exists()
    before = rows()
    fill()
    assert rows() == before


def test_an_installation_that_is_new_has_nothing_to_fill(database):
    accept(message())
    before = rows()
    fill()
    assert rows() == before


def test_the_day_of_an_upgrade_is_counted_where_the_record_began_that_day(database):
    accept(message("of before", message_id="a"))
    ActivitySum.objects.all().delete()
    accept(message("of after", message_id="b"))
    fill()
    assert sums(day=timezone.localdate().isoformat())["received"] == 2
    before = rows()
    fill()
    assert rows() == before


def test_days_without_messages_do_not_have_the_day_of_today_counted_again(database):
    accept(message())
    move_back(2)
    fill()
    ActivitySum.objects.filter(day=timezone.localdate().isoformat()).delete()
    accept(message("of today"))
    before = rows()
    fill()
    assert rows() == before
