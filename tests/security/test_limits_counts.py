"""The counts behind the limits: true whatever becomes of a transaction, bounded, and no way around
them by the clock."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.domain.answer_limits import (
    LOOP_EXCHANGES,
    LOOP_SILENCE,
    AnswerCount,
    LimitCheck,
    MessageTime,
    build_loop_refusal,
    check_limits,
    count_answer,
    may_loop,
)
from agent.domain.manners import ChatManners
from agent.domain.types import ChatAddress
from agent.models import Manners as Row, SpendSum, Tally
from agent.record.record import Record
from agent.record.settings.live import LiveSettings
from agent.record.settings.manners import load_manners_table
from agent.record.sums.quotas import AnswerQuotas
from agent.record.sums.tallies import find_silences
from agent.runtime import record_retention
from tests.agent.talk import GROUP, PRIVATE, PROCESS, arrival, message

pytestmark = pytest.mark.django_db(transaction=True)

LIMITS = ChatManners(person_per_minute=3, person_per_day=5, chat_per_minute=4)


class Slip(Exception):  # noqa: N818 - it stands for any
    """A fault of one request among others."""


def slip(_items: Sequence[Any]) -> NoReturn:
    raise Slip


@pytest.fixture
async def limited(settings: Any) -> AsyncIterator[Record]:
    """A record under :data:`LIMITS`."""
    settings.PERSON_ANSWERS_PER_MINUTE = LIMITS.person_per_minute
    settings.PERSON_ANSWERS_PER_DAY = LIMITS.person_per_day
    settings.CHAT_ANSWERS_PER_MINUTE = LIMITS.chat_per_minute
    live = LiveSettings()
    record = Record(PROCESS, live, AnswerQuotas(live, 0))
    yield record
    await record.close()


async def said(
    record: Record, chat: ChatAddress = PRIVATE, at: datetime | None = None, **fields: Any
) -> str:
    """The reason of one more message, and its state."""
    one = arrival(
        message("hi", chat, mentions_bot=True, **fields), received_at=at or timezone.now()
    )
    decision = (await record.submit_batched(record.arrivals.accept_messages, one)).decision
    assert decision is not None
    return f"{decision.reason} {decision.state}"


async def test_what_was_not_committed_was_not_counted(limited):
    for _ in range(3):
        beside = limited.submit_batched(slip, None)
        assert await said(limited) == "private waiting"
        with pytest.raises(Slip):
            await beside
    assert await said(limited) == "person_limit waiting"  # to tell him
    assert await said(limited) == "person_limit silent"
    assert await sync_to_async(Tally.objects.get)(subject="onebot:10001/20001") is not None


async def test_a_batch_that_is_rolled_back_whole_leaves_no_count(limited):
    def accepted_and_slipped(items: Sequence[Any]) -> NoReturn:
        limited.arrivals.accept_messages(items)
        raise Slip

    for _ in range(5):
        with pytest.raises(Slip):
            await limited.submit_batched(accepted_and_slipped, arrival(message("hi")))
    assert [await said(limited) for _ in range(3)] == ["private waiting"] * 3


async def test_messages_of_one_commit_count_one_after_the_other(limited):
    accepted = await asyncio.gather(
        *(
            limited.submit_batched(
                limited.arrivals.accept_messages, arrival(message(f"hi {number}"))
            )
            for number in range(6)
        )
    )
    assert [one.decision.reason for one in accepted] == ["private"] * 3 + ["person_limit"] * 3
    assert [one.decision.state for one in accepted] == ["waiting"] * 4 + ["silent"] * 2


async def test_a_message_that_comes_twice_counts_once(limited):
    for _ in range(4):
        await limited.submit_batched(
            limited.arrivals.accept_messages, arrival(message("hi", message_id="77"))
        )
    assert [await said(limited) for _ in range(2)] == ["private waiting"] * 2


async def test_a_silence_of_a_clock_that_was_put_back_is_not_shown(limited):
    now = int(timezone.now().timestamp())
    for name, until in (("20001", now + 60), ("20002", now + 10**6)):
        await sync_to_async(Tally.objects.create)(
            subject=f"{GROUP.place}/{name}", silent_until=until
        )
    assert await sync_to_async(find_silences)(GROUP.place, now) == [("20001", now + 60)]


async def test_counts_from_a_clock_that_was_put_back_are_deleted(limited):
    await said(limited, at=timezone.now() + timedelta(days=30))
    await record_retention.prune_counts(limited)
    assert not await sync_to_async(Tally.objects.exists)()


async def test_what_is_not_for_the_bot_counts_nothing(limited):
    for _ in range(10):
        await limited.submit_batched(
            limited.arrivals.accept_messages, arrival(message("chatter", GROUP))
        )
    assert await said(limited, GROUP) == "mention waiting"


async def test_no_minute_holds_more_than_the_limit_and_no_day_either(limited):
    start = datetime(2026, 5, 4, 8, 0, 59, tzinfo=timezone.get_default_timezone())
    times = [start + timedelta(seconds=seconds) for seconds in range(0, 300, 5)]
    answered = [at for at in times if (await said(limited, at=at)).startswith("private")]
    assert len(answered) == 5
    assert all(
        sum(at <= one < at + timedelta(seconds=60) for one in answered) <= 3 for at in answered
    )
    assert (await said(limited, at=start + timedelta(days=1))).startswith("private")


async def test_one_person_and_another_account_are_counted_apart(limited):
    elsewhere = ChatAddress("10002", "private", PRIVATE.peer_id)
    assert [await said(limited, chat) for chat in (PRIVATE, elsewhere) for _ in range(3)] == [
        "private waiting"
    ] * 6


async def test_counts_that_nobody_adds_to_are_deleted(limited):
    await said(limited, at=timezone.now() - timedelta(days=3))
    await said(limited, GROUP, sender_id="20009")
    await SpendSum.objects.acreate(day="2020-01-01", kind="total", input_tokens=5)
    assert await record_retention.prune_counts(limited) == 2
    assert await sync_to_async(Tally.objects.count)() == 3
    assert not await SpendSum.objects.aexists()


# --- Deciding, without a record ------------------------------------------------------


def case(**fields: Any) -> LimitCheck:
    return LimitCheck(
        fields.pop("limits", LIMITS), AnswerCount(), AnswerCount(), AnswerCount(), **fields
    )


def test_a_clock_that_was_put_back_locks_nobody_out():
    one = case()
    for _ in range(3):
        count_answer(one, None, MessageTime(2_000_000_000, "2033-05-18"))
    assert check_limits(one, MessageTime(1_800_000_000, "2027-01-15")) is None


def test_a_silence_begins_after_ten_exchanges_and_ends_after_five_minutes():
    one = case(limits=ChatManners(person_per_minute=100))
    now = 1_800_000_000
    for number in range(LOOP_EXCHANGES):
        moment = MessageTime(now + number, "2027-01-15")
        assert not may_loop(one, moment)
        count_answer(one, None, moment)
    opening = MessageTime(now + 10, "2027-01-15")
    assert may_loop(one, opening)
    refused = build_loop_refusal(one)
    assert (refused.reason, refused.opens_loop, refused.is_told) == ("loop", True, False)
    count_answer(one, refused, opening)
    later = check_limits(one, MessageTime(now + 10 + LOOP_SILENCE - 1, "2027-01-15"))
    assert later is not None
    assert not later.opens_loop
    assert check_limits(one, MessageTime(now + 10 + LOOP_SILENCE, "2027-01-15")) is None


def test_a_clock_that_was_put_back_ends_a_silence():
    one = case()
    for _ in range(LOOP_EXCHANGES):
        count_answer(one, None, MessageTime(2_000_000_000, "2033-05-18"))
    ahead = MessageTime(2_000_000_000, "2033-05-18")
    count_answer(one, build_loop_refusal(one), ahead)
    assert check_limits(one, MessageTime(1_800_000_000, "2027-01-15")) is None


def test_a_limit_of_nothing_ends_a_silence():
    one = case(limits=ChatManners())
    one.exchanges.silent_until = 1_800_000_100
    assert check_limits(one, MessageTime(1_800_000_000, "2027-01-15")) is None


def test_ten_exchanges_in_more_than_thirty_seconds_are_a_talk():
    one = case(limits=ChatManners(person_per_minute=100))
    for number in range(40):
        moment = MessageTime(1_800_000_000 + 4 * number, "2027-01-15")
        assert check_limits(one, moment) is None
        assert not may_loop(one, moment)
        count_answer(one, None, moment)


def test_a_limit_of_nothing_refuses_nobody():
    one = case(limits=ChatManners())
    for _ in range(1_000):
        assert check_limits(one, MessageTime(1_800_000_000, "2027-01-15")) is None
        assert not may_loop(one, MessageTime(1_800_000_000, "2027-01-15"))
        count_answer(one, None, MessageTime(1_800_000_000, "2027-01-15"))


def test_a_chat_has_its_answers_of_a_day_and_is_told_once():
    one = case(limits=ChatManners(chat_per_day=2))
    moments = [MessageTime(1_800_000_000 + 100 * number, "2027-01-15") for number in range(4)]
    for moment in moments[:2]:
        assert check_limits(one, moment) is None
        count_answer(one, None, moment)
    refusals = []
    for moment in moments[2:]:
        refusals.append(refused := check_limits(one, moment))
        count_answer(one, refused, moment)
    assert [(refused.reason, refused.is_told) for refused in refusals if refused] == [
        ("chat_limit", True),
        ("chat_limit", False),
    ]
    assert check_limits(one, MessageTime(1_800_086_400, "2027-01-16")) is None


def test_a_chats_own_limits_outdo_the_accounts():
    Row.objects.create(name="account", account=GROUP.account, chat_per_day=5)
    Row.objects.create(name="chat", account=GROUP.account, chats=GROUP.key, chat_per_day=0)
    found = load_manners_table()
    assert found.find(PRIVATE).chat_per_day == 5
    assert not found.find(GROUP).has_limits
