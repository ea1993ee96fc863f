"""A process that was asleep between putting an answer on record and writing it: it asks the record
again first."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.models import Message
from agent.record import record as module
from agent.record.record import Record
from agent.record.waiting.recovery import record_heartbeat
from agent.run import message_sender
from tests.agent.chat.conftest import mailbox, make
from tests.agent.chat.inboxes import Make, held, idle, rows, until
from tests.agent.talk import Mailbox, Script, message

__all__ = ["mailbox", "make"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sleep(record: Record, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have the process believe that so many seconds have gone by."""
    monkeypatch.setattr(message_sender, "MOVE_SECONDS", 0.01)
    gone, now = [0.0], module.read_boot_clock
    monkeypatch.setattr(module, "read_boot_clock", lambda: now() + gone[0])

    def sleep(seconds: float) -> None:
        gone[0] += seconds

    return sleep


async def test_what_nobody_has_taken_over_is_sent_once_its_lease_is_renewed(
    make: Make, mailbox: Mailbox, record, sleep
):
    answer = held()
    inbox = make(Script(answer))
    await record.renew_lease(alone=False, is_first=True)
    inbox.receive_message(message("hi"))
    await until(lambda: not inbox._arriving)
    sleep(60)
    assert record.is_lease_over
    answer.set_result("hello")
    await until_pending()
    assert mailbox.sent == []
    assert not await record.renew_lease(alone=False)
    await idle(inbox)
    assert mailbox.texts == ["hello"]


async def test_what_others_have_taken_over_is_not_sent(make: Make, mailbox: Mailbox, record, sleep):
    answer = held()
    inbox = make(Script(answer))
    await record.renew_lease(alone=False, is_first=True)
    inbox.receive_message(message("hi"))
    await until(lambda: not inbox._arriving)
    sleep(60)
    answer.set_result("hello")
    await until_pending()
    await sync_to_async(record_heartbeat)("other", alone=True, is_first=True)
    await idle(inbox)
    assert mailbox.sent == []
    assert [state for _, state, _ in await rows(direction="in")] == ["running"]


async def until_pending() -> None:
    while not await Message.objects.filter(direction="out", state="pending").aexists():
        pass
