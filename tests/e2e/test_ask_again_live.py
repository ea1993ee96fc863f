"""A message asked again on a real server: the real loop with the real model, and nothing of it
reaches the chat, its history or the next start."""

import asyncio
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.scripted_model import Call, ScriptedModel, calls, held, text_of

PART = {"type": "plain", "text": "never sent"}
TRIAL = "SELECT * FROM agent_run WHERE trial_of_id IS NOT NULL AND finished_at IS NOT NULL"


async def ask(bot: FakeOneBot, user: int, words: str) -> str:
    await bot.say_private(user, words)
    return spoken(await bot.next_action())


async def ask_again(server: LiveServer, run: int, **chosen: Any) -> None:
    """By the page of the run that answered."""

    def press() -> None:
        cockpit = Cockpit(server)
        cockpit.save(f"/admin/agent/run/{run}/again/", {"persona": "", "endpoint": "", **chosen})
        cockpit.close()

    await asyncio.to_thread(press)


@pytest.mark.slow
async def test_a_message_that_is_asked_again_sends_nothing_and_is_no_history(
    start_server: Any, model: ScriptedModel
):
    server, user = start_server(SYSTEM_PROMPT="You are I."), fresh_id()
    wanted = (
        Call("send_message", {"messages": [PART]}),
        Call("remember", {"text": "a secret"}),
        Call("get_weather", {"city": "Paris"}),
    )
    model.script(["one", calls(*wanted), "another answer", "two"])
    async with client(server) as bot:
        await ask(bot, user, "first")
        answer = server.rows("SELECT * FROM agent_run")[0]
        await ask_again(server, answer["id"])
        trial = await server.row(TRIAL)
        assert "two" in await ask(bot, user, "second")  # and it is the next that is sent
    assert (trial["state"], trial["final_text"]) == ("finished", "another answer")
    assert (trial["session_id"], trial["message_id"], trial["author"]) == (None, None, "admin")
    called = server.rows("SELECT * FROM agent_toolcall ORDER BY id")
    assert [one["verdict"] for one in called] == ["stood_in", "stood_in", "mocked"]
    assert server.rows("SELECT 1 FROM agent_note") == []
    assert len(server.rows("SELECT 1 FROM agent_message WHERE direction = 'out'")) == 2
    original, again, _, after = model.requests
    assert again.messages == original.messages
    said = [text_of(message) for message in after.messages]
    assert not any("another answer" in words or "never sent" in words for words in said)
    (act,) = server.rows("SELECT * FROM agent_operatoract WHERE kind = 'ask_again'")
    assert (act["run_id"], act["author_name"]) == (trial["id"], "admin")
    (spent,) = server.rows("SELECT sum(calls) AS calls FROM agent_spendsum WHERE kind = 'total'")
    assert spent["calls"] == len(model.requests)
    (person,) = server.rows("SELECT sum(calls) AS calls FROM agent_spendsum WHERE kind = 'person'")
    assert person["calls"] == 2  # nobody pays for what an operator asks


@pytest.mark.slow
async def test_a_trial_that_a_crash_cuts_off_is_on_record_as_such_at_the_next_start(
    start_server: Any, model: ScriptedModel
):
    server, user = start_server(), fresh_id()
    model.script(["one", held("too late")])
    async with client(server) as bot:
        await ask(bot, user, "first")
        await ask_again(server, server.rows("SELECT id FROM agent_run")[0]["id"])
        await model.wait_for_requests(2)
        server.kill()
    model.release()
    await asyncio.to_thread(server.start)
    trial = await server.row(TRIAL)
    assert (trial["state"], trial["final_text"]) == ("interrupted", "")
    assert "stopped" in trial["error"]
    assert len(model.requests) == 2


@pytest.mark.slow
async def test_one_operator_asks_again_once_at_a_time_and_stopping_the_server_ends_it(
    start_server: Any, model: ScriptedModel
):
    server, user = start_server(), fresh_id()
    model.script(["one", held("too late")])
    async with client(server) as bot:
        await ask(bot, user, "first")
        run = server.rows("SELECT id FROM agent_run")[0]["id"]
        await ask_again(server, run)
        await ask_again(server, run)
        await model.wait_for_requests(2)
        await asyncio.to_thread(server.terminate)
    (trial,) = server.rows(TRIAL)
    assert (trial["state"], trial["error"]) == (
        *("interrupted", "the server stopped before the model had answered"),
    )
