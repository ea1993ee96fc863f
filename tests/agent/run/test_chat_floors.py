"""Between the messages of one answer nothing else is said in a chat."""

import asyncio

import pytest

from agent.domain.types import AnswerMessage, Delivery, MessagePart
from agent.models import Message
from agent.record.run_journal import RunJournal
from agent.record.runs.runs import StartRun
from agent.run.message_sender import ChatFloors, MessageSender
from tests.agent.talk import PLAN, PRIVATE, Mailbox, arrival, message

pytestmark = pytest.mark.django_db(transaction=True)


class SlowMailbox(Mailbox):
    """A client that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Semaphore(0)
        self.written = asyncio.Semaphore(0)

    async def deliver(self, *args, **fields) -> Delivery:
        delivery = await super().deliver(*args, **fields)
        self.written.release()
        await self.may_answer.acquire()
        return delivery


def words(text: str) -> list[MessagePart]:
    return [MessagePart("plain", text=text)]


async def sender(record, outbox, floors) -> MessageSender:
    said = message("hi")
    accepted = await record.submit_batched(record.arrivals.accept_messages, arrival(said))
    begun = await record.begin_run(StartRun(PLAN, accepted.pk, accepted.session_pk))
    return MessageSender(
        RunJournal(record, begun.claim),
        outbox,
        PRIVATE,
        session_pk=accepted.session_pk,
        floors=floors,
    )


async def until_on_record(text: str) -> None:
    while not await Message.objects.filter(text=text, state="pending").aexists():
        pass


async def test_two_turns_of_a_chat_never_speak_between_each_others_parts(record):
    """Checklist 97."""
    mailbox, floors = SlowMailbox(), ChatFloors()
    first, second = [await sender(record, mailbox, floors) for _ in range(2)]
    parts = [AnswerMessage(words(text), text) for text in "abc"]
    others = [AnswerMessage(words(text), text) for text in "xy"]
    answer = asyncio.create_task(first.send_parts(parts, "abc"))
    await mailbox.written.acquire()
    single = asyncio.create_task(second.send_final(words("1"), "1"))
    other = asyncio.create_task(first.send_parts(others, "xy"))
    await until_on_record("1")
    for _ in range(6):
        mailbox.may_answer.release()
    await asyncio.gather(answer, single, other)
    assert "".join(mailbox.texts).replace("1", "") == "abcxy"
    assert "1" in "".join(mailbox.texts).replace("abc", "").replace("xy", "")
    assert not floors.is_held(PRIVATE)


async def test_a_part_that_is_cancelled_is_unknown_and_the_others_stay_to_be_sent(record):
    mailbox = SlowMailbox()
    speaker = await sender(record, mailbox, ChatFloors())
    parts = [AnswerMessage(words(text), text) for text in "abc"]
    answer = asyncio.create_task(speaker.send_parts(parts, "abc"))
    await mailbox.written.acquire()
    mailbox.may_answer.release()
    await mailbox.written.acquire()
    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer
    await record.submit_batched(lambda items: items, None)
    rows = Message.objects.filter(direction="out").order_by("pk")
    assert [(row.text, row.state, row.part) async for row in rows] == [
        ("a", "delivered", 1),
        ("b", "unknown", 2),
        ("c", "pending", 3),
    ]
