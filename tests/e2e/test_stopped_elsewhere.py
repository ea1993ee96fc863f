"""An answer that one process makes, and another process is told to stop."""

import asyncio

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.scripted_model import held

pytest.importorskip(
    "tests.services", reason="no server wheels for this platform", exc_type=ImportError
)

pytestmark = pytest.mark.slow

RUN = (
    "SELECT m.state, m.reason, run.state AS run FROM agent_message m "
    "JOIN agent_run run ON run.message_id = m.id "
    "WHERE m.sender_id = ? AND m.text = ? AND m.settled_at IS NOT NULL"
)
STOPPED = {"state": "silent", "reason": "stopped", "run": "stopped"}


async def test_an_answer_of_another_process_is_stopped_and_never_sent(first, second, model):
    model.script([held("too late")])
    account, user = fresh_id(), fresh_id()
    async with client(first, account) as bot:
        await bot.say_private(user, "one")
        await model.wait_for_requests(1)
    async with client(second, account) as bot:
        await bot.say_private(user, "/stop")
        await bot.next_action()
        assert await second.row(RUN, str(user), "one") == STOPPED
        model.release()
        await asyncio.sleep(0)
        await bot.no_action(user=user)
    assert (await second.row(RUN, str(user), "one")) == STOPPED


async def test_a_message_that_is_recalled_in_another_process_is_not_answered(first, second, model):
    """Checklist 74."""
    model.script([held("too late")])
    account, user = fresh_id(), fresh_id()
    async with client(first, account) as bot:
        event = await bot.say_private(user, "one")
        await model.wait_for_requests(1)
    async with client(second, account) as bot:
        recalled = {"user_id": user, "message_id": event["message_id"]}
        await bot.tell("notice", notice_type="friend_recall", **recalled)
        end = await second.row(RUN, str(user), "one")
        model.release()
        await bot.no_action(user=user)
    assert end == STOPPED | {"reason": "recalled"}
