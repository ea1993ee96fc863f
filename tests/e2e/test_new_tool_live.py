"""What an operator does with a tool that a developer has just written: one typed function with a
docstring."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.odd_server import OddServer
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import Answer, Call, ScriptedModel, call, calls

TOOL = "whoami"
SAID = "1 was said"


@pytest.fixture
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with OddServer(scripted_env(model_server)) as server:
        yield server


@pytest.fixture
def cockpit(live: LiveServer) -> Iterator[Cockpit]:
    operator = Cockpit(live)
    yield operator
    operator.close()


async def results(live: LiveServer, model: ScriptedModel, answer: Answer) -> list[str]:
    """What the calls of ``answer`` came to in a run of somebody new."""
    model.script([answer, "the end"])
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "the end"
    return [
        message["content"] for message in model.requests[-1].messages if message["role"] == "tool"
    ]


async def test_a_new_tool_appears_is_tried_limited_switched_off_and_put_back(live, model, cockpit):
    once, twice = call(TOOL, user_id="1"), calls(*(Call(TOOL, {"user_id": "1"}) for _ in range(2)))
    assert TOOL in await asyncio.to_thread(cockpit.page, "/admin/tools/toolconfig/")
    assert SAID in await asyncio.to_thread(cockpit.try_out, TOOL, user_id="1")
    await asyncio.to_thread(cockpit.configure, TOOL, calls_per_minute_person=1)
    first, second = await results(live, model, twice)
    assert SAID in first
    assert second.startswith("调用过于频繁")
    await asyncio.to_thread(cockpit.configure, TOOL, enabled=False)
    assert (await results(live, model, once))[0].startswith(f"Tool not found: {TOOL}")
    await asyncio.to_thread(cockpit.take_back, TOOL)
    assert SAID in (await results(live, model, once))[0]


async def test_a_call_that_the_row_makes_wait_is_approved_in_the_admin_and_told_in_the_chat(
    live, model, cockpit
):
    await asyncio.to_thread(cockpit.configure, TOOL, requires_approval="always")
    model.script([call(TOOL, user_id="1"), "I asked.", "Approved it is."])
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert "需要机器人主人批准" in spoken(await bot.next_action())
        assert spoken(await bot.next_action()) == "I asked."
        (approval,) = live.rows("SELECT id FROM agent_approval WHERE state = 'waiting'")
        assert f"/agent/approval/{approval['id']}/change/" in await asyncio.to_thread(
            cockpit.page, "/admin/agent/approval/"
        )
        await asyncio.to_thread(cockpit.approve, approval["id"])
        assert spoken(await bot.next_action(10)) == "Approved it is."
    assert SAID in model.requests[-1].messages[-1]["content"]
