"""A message that waits for its turn: on record as pending, and written once, whatever happens
meanwhile."""

import asyncio

import pytest

from agent.domain.manners import ChatManners
from agent.domain.states import Claim
from agent.record.chats.sessions import open_chats
from agent.record.run_journal import RunJournal
from agent.run.message_sender import Courier, MessageSender, Outgoing
from tests.agent.chat.conftest import mailbox, make
from tests.agent.chat.inboxes import Make, idle, rows, until
from tests.agent.talk import GROUP, PRIVATE, Mailbox, Script, message
from tools.registry.execution import time_limit

__all__ = ["mailbox", "make"]
pytestmark = pytest.mark.django_db(transaction=True)


async def test_an_answer_is_pending_until_its_turn_and_then_sent_once(make: Make, mailbox: Mailbox):
    mailbox.turns = [0.1]
    inbox = make(Script("hello"))
    inbox.receive_message(message("hi"))
    while not (out := await rows(direction="out")):
        pass
    assert (out, mailbox.sent) == ([("hello", "pending", "")], [])
    await idle(inbox)
    assert mailbox.texts == ["hello"]
    assert await rows(direction="out") == [("hello", "delivered", "")]


async def test_what_a_stopped_process_left_waiting_is_sent_once_by_the_next(
    make: Make, mailbox: Mailbox
):
    mailbox.turns = [3_600.0]
    first, model = make(Script("hello")), Script()
    first.receive_message(message("hi"))
    await until(lambda: not mailbox.turns)
    while not await rows(direction="out"):
        pass
    await first.drain(0)
    assert await rows() == [("hi", "waiting", "private"), ("hello", "pending", "")]
    second = make(model)
    second.resume(PRIVATE.account)
    await until(lambda: mailbox.sent)
    await idle(second)
    assert (mailbox.texts, model.requests) == (["hello"], [])
    assert await rows(state="delivered") == [("hello", "delivered", "")]


class Rated(Mailbox):
    """Remembers at which rates it was asked for turns."""

    def next_turn(self, chat, sends_per_minute=None):
        self.asked = (chat, sends_per_minute)
        return 0.0


async def test_another_chat_is_written_to_at_its_own_rate(record):
    mailbox = Rated()
    journal = RunJournal(record, Claim(1, 1, ""))
    sender = MessageSender(journal, mailbox, PRIVATE, session_pk=1, sends_per_minute=9)
    opened = await record.submit(open_chats, GROUP, ChatManners(sends_per_minute=2))
    sender.elsewhere(GROUP, opened)._next_turn()
    assert mailbox.asked == (GROUP, 2)


async def test_no_time_limit_runs_out_while_a_message_waits_for_its_turn(monkeypatch):
    waited = asyncio.Event()
    monkeypatch.setattr("agent.run.message_sender.asyncio.sleep", lambda _seconds: waited.wait())
    courier = object.__new__(Courier)
    asyncio.get_running_loop().call_later(0.1, waited.set)
    async with time_limit(0.02) as limit:
        await courier.await_turn(Outgoing(1, [], "e"), 60.0)
    assert not limit.expired()
