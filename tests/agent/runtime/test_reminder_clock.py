"""The task that sleeps until the next reminder is due: what wakes it, and what it gets over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.utils import timezone

from agent.models import ChatSession, Message, Reminder
from agent.record.record import Record
from agent.record.reminders.firing import DueReminders
from agent.record.sums.quotas import AnswerQuotas
from agent.runtime import reminder_clock
from agent.runtime.reminder_clock import ReminderClock
from agent.runtime.runtime import Runtime
from onebot.connections.client import OneBotClient
from onebot.gateway.delivery import OneBotDelivery
from tests.agent.talk import GROUP, accept, message

pytestmark = pytest.mark.django_db(transaction=True)
SOON, HOUR = 20.0, timedelta(hours=1)


class Watched:
    """A record that tells what each look at the reminders came to, and refuses where it has to."""

    def __init__(self, record: Record) -> None:
        self.run_starter, self._record = record.run_starter, record
        self.refusals = 0
        self.looks: asyncio.Queue[DueReminders] = asyncio.Queue()

    async def submit(self, *work: Any) -> DueReminders:
        if self.refusals:
            self.refusals -= 1
            raise OperationalError("the disk is full")
        found: DueReminders = await self._record.submit(*work)
        self.looks.put_nowait(found)
        return found

    async def next_look(self) -> DueReminders:
        async with asyncio.timeout(SOON):
            return await self.looks.get()


@pytest.fixture
async def session(record: Record) -> ChatSession:
    await record.submit(lambda: accept(message("hi", GROUP)))
    return await ChatSession.objects.aget()


@pytest.fixture
def watched(record: Record) -> Watched:
    return Watched(record)


@pytest.fixture
async def resumed(watched: Watched) -> list[str]:
    """The accounts that had something to say."""
    return []


@pytest.fixture
async def clock(
    record: Record, watched: Watched, resumed: list[str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ReminderClock]:
    monkeypatch.setattr(reminder_clock, "TIME_LIMITS", SimpleNamespace(turn_pause=0.0))
    quotas = AnswerQuotas(record.live, 0)
    made = ReminderClock(cast("Any", watched), quotas, {GROUP.account}, resumed.append)
    yield made
    await made.close()


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Puts the clock of the machine forward or back by so much, from what it really is."""
    real = timezone.now

    def shift(much: timedelta) -> None:
        monkeypatch.setattr(timezone, "now", lambda: real() + much)

    return shift


@sync_to_async
def remind(session: ChatSession, due: datetime | None = None, **fields: Any) -> Reminder:
    usual = {"text": "x", "set_by": "20001", "due_at": due or timezone.now()}
    row: Reminder = Reminder.objects.create(session=session, **usual | fields)
    return row


def said() -> Any:
    return Message.objects.filter(reason="reminder").order_by("pk")


async def test_nothing_is_waited_for_while_there_is_nothing(clock, watched):
    clock.look()
    assert not (await watched.next_look()).is_waiting
    await asyncio.wait_for(clock._task, SOON)


async def test_what_the_database_refused_is_looked_up_again(session, clock, watched, resumed):
    await remind(session)
    watched.refusals = 3
    clock.look()
    assert (await watched.next_look()).accounts == {GROUP.account}
    assert (watched.refusals, await said().acount()) == (0, 1)
    assert resumed == [GROUP.account]


async def test_a_refusal_between_two_looks_loses_nothing(session, clock, watched):
    row = await remind(session, timezone.now() + HOUR)
    clock.look()
    assert (await watched.next_look()).next_at == row.due_at
    await Reminder.objects.filter(pk=row.pk).aupdate(due_at=timezone.now())
    watched.refusals = 1
    clock.look()
    await watched.next_look()
    assert await said().acount() == 1


async def test_a_clock_that_is_put_forward_is_noticed(session, clock, watched, shift):
    await remind(session, timezone.now() + HOUR)
    clock.look()
    assert not (await watched.next_look()).accounts
    clock.check_time()
    shift(2 * HOUR)
    clock.check_time()
    assert (await watched.next_look()).accounts
    assert watched.looks.empty()
    assert await said().acount() == 1


async def test_a_clock_that_is_put_back_says_nothing_early_and_nothing_twice(
    session, clock, watched, shift
):
    row = await remind(session, timezone.now().replace(microsecond=0) + HOUR, repeat="FREQ=DAILY")
    shift(-24 * HOUR)
    clock.look()
    assert (await watched.next_look()).next_at == row.due_at
    shift(2 * HOUR)
    clock.check_time()
    await watched.next_look()
    await said().aupdate(state="answered")
    shift(-2 * HOUR)
    clock.look()
    assert (await watched.next_look()).next_at == row.due_at + 24 * HOUR
    assert await said().acount() == 1


async def test_a_change_wakes_it_from_its_sleep(session, clock, watched):
    await remind(session, timezone.now() + HOUR)
    clock.look()
    await watched.next_look()
    sooner = await remind(session)
    clock.look()
    await watched.next_look()
    assert [one["reminder"]["pk"] async for one in said().values_list("raw", flat=True)] == [
        sooner.pk
    ]


async def test_of_many_in_one_second_each_chat_has_its_own_in_their_order(
    session, clock, watched, record
):
    await record.submit(lambda: accept(message("hi", replace(GROUP, peer_id="30002"))))
    second, start = await ChatSession.objects.aget(peer_id="30002"), timezone.now()
    sooner = [start - timedelta(milliseconds=(7 * number) % 997) for number in range(450)]
    chats = [(session, second)[number % 2] for number in range(450)]
    await Reminder.objects.abulk_create(
        Reminder(session=chat, text="x", set_by="20001", due_at=due)
        for chat, due in zip(chats, sooner, strict=True)
    )
    clock.look()
    looks = [await watched.next_look() for _ in range(3)]
    assert looks[-1].next_at is None
    for chat in (session, second):
        raws = [raw async for raw in said().filter(session=chat).values_list("raw", flat=True)]
        pks = [raw["reminder"]["pk"] for raw in raws]
        rows = Reminder.objects.filter(session=chat).order_by("due_at", "pk")
        assert pks == [row.pk async for row in rows]
        assert len(pks) == 225


async def test_a_change_of_another_process_is_met_by_the_one_with_the_account(
    session, record, monkeypatch
):
    runtime = Runtime(OneBotDelivery(OneBotClient.__new__(OneBotClient)))
    resumed: asyncio.Queue[str] = asyncio.Queue()
    monkeypatch.setattr(runtime.inbox, "resume", resumed.put_nowait)
    runtime._loop = asyncio.get_running_loop()
    runtime._accounts.add(GROUP.account)

    async def hear_news() -> None:  # as after each change that the database tells
        await runtime.record.submit(runtime.record.run_starter.reload_settings)

    try:
        await hear_news()
        later = timezone.now() + HOUR
        row = await record.submit(
            lambda: Reminder.objects.create(session=session, text="x", due_at=later)
        )
        await hear_news()
        change = Reminder.objects.filter(pk=row.pk).update
        await record.submit(lambda: change(due_at=timezone.now()))
        assert resumed.empty()
        await hear_news()
        async with asyncio.timeout(SOON):
            assert await resumed.get() == GROUP.account
        assert await said().acount() == 1
    finally:
        if runtime._reminders is not None:
            await runtime._reminders.close()
        await runtime.record.close()
