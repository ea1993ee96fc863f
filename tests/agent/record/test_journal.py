"""What runs put on record, many in one commit."""

import asyncio
import threading
from dataclasses import replace

import pytest
from asgiref.sync import sync_to_async

from agent.domain.types import Delivery
from agent.models import Message
from agent.record.run_journal import RunJournal
from agent.record.runs.replies import OutgoingMessage, SendResult
from agent.record.runs.runs import StartRun
from tests.agent.talk import GROUP, PLAN, PRIVATE, arrival, message

pytestmark = pytest.mark.django_db(transaction=True)
State = Message.State


async def test_what_one_run_puts_down_keeps_its_order_beside_what_others_do(record):
    journals, pks = [], []
    for chat in (PRIVATE, GROUP):
        said = message("hi", chat, mentions_bot=True)
        accepted = await record.submit_batched(record.arrivals.accept_messages, arrival(said))
        begun = await record.begin_run(
            StartRun(replace(PLAN, chat=chat), accepted.pk, accepted.session_pk)
        )
        journals.append(RunJournal(record, begun.claim))
        echo = f"e{accepted.pk}"
        pks.append(
            await journals[-1].add_reply(
                OutgoingMessage(accepted.session_pk, begun.run_pk, "hi", [], echo, State.SENT)
            )
        )
    go_on = threading.Event()
    slow = record.submit_batched(lambda items: [go_on.wait(5) for _ in items], None)
    while record._waiting:  # noqa: ASYNC110
        await asyncio.sleep(0)
    other = journals[0].mark_sent(pks[0], "other")
    journals[1].settle(SendResult(pks[1], Delivery(State.PENDING)))
    again = journals[1].mark_sent(pks[1], "again")
    go_on.set()
    await asyncio.gather(slow, other, again)
    assert await sync_to_async(lambda: Message.objects.get(pk=pks[1]).state)() == "sent"
