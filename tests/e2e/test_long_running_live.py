"""Tools that take long: run once, heard of while they work, and told of when they are done."""

from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.later_server import LaterServer
from tests.fake_onebot import FakeOneBot, spoken
from tests.scripted_model import Request, ScriptedModel, call


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Any:
    with LaterServer(scripted_env(model_server)) as server:
        yield server


def results(request: Request) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] == "tool"]


async def begun(bot: FakeOneBot, model: ScriptedModel, user: int, name: str) -> None:
    """``user`` asked for a film, and was told that it takes a while."""
    model.script([call("render", name=name), "It takes a while."])
    await bot.say_private(user, "render!")
    assert spoken(await bot.next_action()) == "It takes a while."


async def test_the_chat_goes_on_and_is_told_of_progress_and_of_the_end(live, model):
    user, name = fresh_id(), f"film{fresh_id()}"
    async with client(live) as bot:
        await begun(bot, model, user, name)
        assert "正在执行" in results(model.requests[-1])[0]
        model.script(["Still here.", "Half.", "Done."])
        await bot.say_private(user, "are you there?")
        assert spoken(await bot.next_action()) == "Still here."
        live.touch(f"{name}.half")
        assert spoken(await bot.next_action()) == "Half."
        assert results(model.requests[-1]) == [f"仍在执行: {name} is half done"]
        live.touch(f"{name}.done")
        assert spoken(await bot.next_action()) == "Done."
    assert results(model.requests[-1]) == [f"{name} is rendered"]
    assert live.lines("begun").count(name) == 1
    (row,) = live.rows(
        "SELECT state, result, progress FROM agent_toolcall WHERE requested_by = ?", str(user)
    )
    assert (row["state"], row["result"], row["progress"]) == (
        "succeeded",
        f"{name} is rendered",
        f"{name} is half done",
    )


async def test_the_later_failure_of_a_tool_is_told_as_one(live, model):
    user, name = fresh_id(), f"broken{fresh_id()}"
    async with client(live) as bot:
        await begun(bot, model, user, name)
        model.script(["Half.", "It tore."])
        live.touch(f"{name}.half")
        assert spoken(await bot.next_action()) == "Half."
        live.touch(f"{name}.done")
        assert spoken(await bot.next_action()) == "It tore."
    assert results(model.requests[-1]) == ["工具执行失败: the film tore"]


async def test_a_tool_that_is_done_soon_is_answered_like_any_other(live, model):
    user, name = fresh_id(), f"film{fresh_id()}"
    live.touch(f"{name}.half")
    live.touch(f"{name}.done")
    async with client(live) as bot:
        model.script([call("render", name=name), "Done."])
        await bot.say_private(user, "render!")
        assert spoken(await bot.next_action()) == "Done."
        await bot.no_action(user=user)
    assert results(model.requests[-1]) == [f"{name} is rendered"]


@pytest.mark.parametrize("end", ["terminate", "kill"])
async def test_work_that_dies_with_the_server_is_told_of_and_not_repeated(start_later, model, end):
    server, user, account = start_later(), fresh_id(), fresh_id()
    async with client(server, account) as bot:
        await begun(bot, model, user, "lost")
    getattr(server, end)()
    server.start()
    model.script(["Lost."])
    async with client(server, account) as bot:
        assert spoken(await bot.next_action()) == "Lost."
    assert results(model.requests[-1]) == [
        "工具执行失败: 服务在执行过程中重启，结果未知，请勿重复执行"
    ]
    assert server.lines("begun") == ["lost"]


async def test_a_call_that_goes_on_after_its_run_is_stopped_and_the_chat_is_told(live, model):
    user, name = fresh_id(), f"endless{fresh_id()}"
    found = "SELECT c.id, c.state, r.session_id FROM agent_toolcall c JOIN agent_run r "
    found += "ON r.id = c.run_id WHERE c.requested_by = ?"
    async with client(live) as bot:
        await begun(bot, model, user, name)
        model.script(["Stopped, then."])
        (made,) = live.rows(found, str(user))
        cockpit, page = Cockpit(live), f"/admin/agent/chatsession/{made['session_id']}"
        cockpit._post(f"{page}/act/stop-call/", {"call": str(made["id"])}, page=f"{page}/change/")
        cockpit.close()
        assert spoken(await bot.next_action()) == "Stopped, then."
    assert "管理员停止了" in results(model.requests[-1])[0]
    assert live.rows(found, str(user))[0]["state"] == "unknown"
    live.touch(f"{name}.half")
    live.touch(f"{name}.done")
