"""Processes that add to the same sums at once, on PostgreSQL: none waits for ever, and nothing is
counted twice or not at all."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper
from django.utils import timezone

from agent.domain.answer_triggers import TriggerDecision
from agent.domain.states import MessageReason, MessageState
from agent.models import ActivitySum, ChatSession
from agent.models.activity import WHOLE_DAY
from agent.record.ground import commit as commits
from agent.record.ground.commit import GroupCommit
from agent.record.sums.activity import Arrival, count_arrivals
from tests.agent.databases import in_place, postgres

__all__ = ["postgres"]
pytestmark = pytest.mark.django_db(transaction=True)
ASKED = TriggerDecision(MessageState.WAITING, MessageReason.PRIVATE)
CHATS, ROUNDS = 40, 30


@pytest.fixture
def chats(postgres: DatabaseWrapper) -> Iterator[list[int]]:
    """Keys of chats in the shared database, which are gone afterwards."""
    with in_place(postgres):
        now = timezone.now()
        made = [
            ChatSession.objects.create(
                account="10001", kind="group", peer_id=f"{n}", last_message_at=now
            )
            for n in range(CHATS)
        ]
        yield [chat.pk for chat in made]
        ChatSession.objects.all().delete()


def moving_in(database: DatabaseWrapper) -> Callable[[], None]:
    """What makes a thread a process of its own to the database. Circles are found soon."""
    settings: dict[str, Any] = {**database.settings_dict}
    settings["OPTIONS"] = {"options": "-c deadlock_timeout=20ms"}

    def move_in() -> None:
        connections["default"] = DatabaseWrapper(settings, "default")

    return move_in


def arrive(pks: Sequence[int]) -> None:
    now = timezone.now()
    count_arrivals([Arrival(pk, "10001", now, ASKED) for pk in pks])


def received() -> set[int]:
    """What the chats have counted for the whole day."""
    rows = ActivitySum.objects.filter(hour=WHOLE_DAY)
    assert rows.count() == CHATS
    return set(rows.values_list("received", flat=True))


def arrive_shuffled(pks: Sequence[int], seed: int) -> None:
    dice = random.Random(seed)
    try:
        for _ in range(ROUNDS):
            with transaction.atomic():
                arrive(dice.sample(pks, len(pks)))
    finally:
        connections["default"].close()


def test_two_processes_that_count_the_same_chats_never_wait_in_a_circle(postgres, chats):
    with ThreadPoolExecutor(2, initializer=moving_in(postgres)) as processes:
        for ended in [processes.submit(arrive_shuffled, chats, seed) for seed in range(2)]:
            ended.result(60)
    assert received() == {2 * ROUNDS}


def arrive_one_by_one(asked: Sequence[int]) -> list[None]:
    """As different operations of one transaction do: in whatever order they come."""
    for pk in asked:
        arrive([pk])
    return [None] * len(asked)


async def test_transactions_that_do_are_repeated_and_count_once(postgres, chats, monkeypatch):
    monkeypatch.setattr(commits, "RETRY_PAUSES", (0.01, 0.02))
    records = [GroupCommit(), GroupCommit()]
    for record in records:
        record._thread.submit(moving_in(postgres)).result()
    dice, told = random.Random(1), []
    for _ in range(10):
        for record in records:
            told += [
                record.submit_batched(arrive_one_by_one, pk) for pk in dice.sample(chats, CHATS)
            ]
        await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.gather(*told), 60)
    for record in records:
        await record.close()
    assert await asyncio.to_thread(in_thread, postgres) == {2 * 10}


def in_thread(database: DatabaseWrapper) -> set[int]:
    moving_in(database)()
    try:
        return received()
    finally:
        connections["default"].close()
