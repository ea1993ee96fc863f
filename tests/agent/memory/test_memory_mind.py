"""The memory of a process as a whole."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.memory.relevance import MemoryContext
from agent.memory.service import MemoryService, MemorySettings, SummaryPolicy
from agent.memory.summary_store import HistoryWindow
from agent.models import ChatSession, Digest, Message, Run
from agent.record.record import Record
from tests.agent.notes import ANN_IN_GROUP, noted
from tests.agent.talk import GROUP, Script

WINDOW = HistoryWindow(2, 1_000)


def talked(turns: int) -> int:
    """The key of a group's session in which so many exchanges were had."""
    now = timezone.now()
    session, _ = ChatSession.objects.get_or_create(
        kind="group",
        peer_id=GROUP.peer_id,
        account=GROUP.account,
        defaults={"last_message_at": now},
    )
    for number in range(turns):
        run = Run.objects.create(session=session, started_at=now)
        for direction, state in (("in", "answered"), ("out", "delivered")):
            fields = {
                "direction": direction,
                "state": state,
                "text": f"{direction} {number}",
                "sender_id": "20001",
            }
            Message.objects.create(
                session=session, run=run, in_history=True, created_at=now, **fields
            )
    return session.pk


async def test_what_is_summarised_after_a_turn_is_in_mind_at_the_next(record: Record):
    model = Script("他们聊了数字")
    memory = MemoryService(
        record,
        MemorySettings(1_500, SummaryPolicy(WINDOW, summary_after=2)),
        lambda: model,
    )
    session_pk = await sync_to_async(talked)(2)
    assert await memory.build_context(session_pk, GROUP, "20001", "hi") == MemoryContext()
    memory.after_turn(session_pk, GROUP)
    await memory.drain(10)
    assert "他们聊了数字" in (await memory.build_context(session_pk, GROUP, "20001", "hi")).summary
    await memory.close()


async def test_with_everything_off_nothing_is_recalled_and_nobody_is_asked(record: Record):
    await sync_to_async(noted)(ANN_IN_GROUP, "希望被叫作船长")
    session_pk = await sync_to_async(talked)(9)
    memory = MemoryService(record, MemorySettings(0, SummaryPolicy(WINDOW)), Script)
    memory.start()
    memory.after_turn(session_pk, GROUP)
    assert await memory.build_context(session_pk, GROUP, "20001", "船长") == MemoryContext()
    await memory.close()


async def test_a_reading_that_is_cut_off_leaves_nothing_behind_and_is_due_again(record: Record):
    never: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    model = Script(never, "摘要")
    settings = MemorySettings(0, SummaryPolicy(WINDOW, summary_after=2))
    session_pk = await sync_to_async(talked)(2)
    memory = MemoryService(record, settings, lambda: model)
    memory.after_turn(session_pk, GROUP)
    await memory.close()
    assert not await Digest.objects.aexists()
    answers = Script("摘要")
    again = MemoryService(record, settings, lambda: answers)
    again.after_turn(session_pk, GROUP)
    await again.drain(10)
    assert (await Digest.objects.aget()).text == "摘要"


async def test_without_a_model_nothing_is_read(record: Record):
    memory = MemoryService(
        record, MemorySettings(0, SummaryPolicy(WINDOW, summary_after=1, extract_turns=1))
    )
    memory.after_turn(await sync_to_async(talked)(9), GROUP)
    await memory.close()
    assert not await Digest.objects.aexists()


@pytest.mark.parametrize("hours", [0, 1])
async def test_what_was_started_is_ended(record: Record, hours: int):
    memory = MemoryService(record, MemorySettings(0, SummaryPolicy(WINDOW), review_hours=hours))
    before = asyncio.all_tasks()
    memory.start()
    (begun,) = asyncio.all_tasks() - before
    await memory.close()
    assert begun.done()
