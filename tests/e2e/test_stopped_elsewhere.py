"""An answer that one process makes, and another process is told to stop."""

import asyncio

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.scripted_model import call, held

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


async def test_a_call_that_another_process_makes_is_stopped_and_its_run_goes_on(
    first, second, model
):
    model.script([call("use_subagent", subagent_name="Coder", content="x"), held("late"), "Ok."])
    account, user = fresh_id(), fresh_id()
    found = "SELECT c.id, c.state, r.session_id FROM agent_toolcall c JOIN agent_run r "
    found += "ON r.id = c.run_id WHERE c.requested_by = ?"
    async with client(first, account) as bot:
        await bot.say_private(user, "write a program")
        await model.wait_for_requests(2)
        made = await first.row(f"{found} AND c.state = 'running'", str(user))
        cockpit, page = Cockpit(second), f"/admin/agent/chatsession/{made['session_id']}"
        cockpit._post(f"{page}/act/stop-call/", {"call": str(made["id"])}, page=f"{page}/change/")
        assert spoken(await bot.next_action()) == "Ok."
        model.release()
        cockpit.close()
    assert (await second.row(found, str(user)))["state"] == "unknown"
