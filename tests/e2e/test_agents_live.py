"""Agents as tools on a real server: a run inside a run, on behalf of whoever asked, also when the
server dies."""

import asyncio
import re
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.scripted_model import Request, ScriptedModel, call, fails, held

_START = '''
import sys, django
django.setup()
from django.conf import settings
from agent.runtime import wiring
from agent.subagents.subagent import Subagent
from agent.domain.endpoint import Endpoint
from agent.llm.client.client import OpenAIClient
from tools.registry.catalogue import DefaultConfig
from tools.functions.function_tool import tool

@tool(default_config=DefaultConfig(allowed="owners"))
def open_vault() -> str:
    """Open the vault."""
    return "open sesame"

@tool(requires_approval=True)
def transfer(amount: int) -> str:
    """Transfer money."""
    return f"{amount} transferred"

def model():
    url = settings.UPSTREAM_ENDPOINT
    return OpenAIClient(Endpoint(url, model="scripted-agent", timeout_seconds=10))

SCHEMA = {"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]}
wiring.SAMPLE_TOOLS += (open_vault, transfer)
wiring.AGENTS += [
    Subagent(name="researcher", description="Finds out.", prompt="Find out.", model=model,
          tools=["get_weather", "open_vault", "transfer", "send_message", "researcher"]),
    Subagent(name="thermometer", description="Measures.", prompt="Measure.", model=model,
          output_schema=SCHEMA),
]
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
'''
RUNS = (
    "SELECT nested.*, call.run_id AS outer_run FROM agent_run nested JOIN agent_toolcall call "
    "ON call.id = nested.parent_id WHERE call.requested_by = ? ORDER BY nested.id"
)


class AgentServer(LiveServer):
    """The real server with two agents of a developer's own, and a tool for the bot's owners."""

    def _command(self) -> list[str]:
        return [sys.executable, "-c", _START, "runserver", f"127.0.0.1:{self.port}", "--noreload"]


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "MODEL_NAME": "scripted",
        "CODER_MODEL_NAME": "scripted-coder",
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "RUN_TIMEOUT": "4",
    }
    with AgentServer(env) as started:
        yield started


def results(request: Request) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] == "tool"]


async def asked(
    server: LiveServer, model: ScriptedModel, tool: str = "researcher", *inner: Any
) -> tuple[int, str]:
    """Who asked in private, and the result that the chat's model was given of ``tool``, whose model
    answers ``inner``."""
    user = fresh_id()
    model.script([call(tool, request="go"), "the end"], model="scripted")
    model.script(inner, model="scripted-agent")
    async with client(server) as bot:
        await bot.say_private(user, "hi")
        while spoken(await bot.next_action()) != "the end":
            pass
    return user, results(model.requests[-1])[-1]


async def test_an_agent_is_offered_as_a_tool_and_works_in_a_run_of_its_own(server, model):
    user, result = await asked(
        server, model, "researcher", call("get_weather", city="北京"), "It is sunny."
    )
    outer, first, second, _ = model.requests
    assert {"researcher", "thermometer"} <= set(outer.tool_names)
    assert [message["content"] for message in first.messages] == ["Find out.", "go"]
    assert set(first.tool_names) == {
        "get_weather",
        "open_vault",
        "transfer",
        "send_message",
        "researcher",
    }
    assert results(second) == ["北京 的天气是晴朗，温度 25°C"]
    assert result == "It is sunny."
    (inner,) = server.rows(RUNS, str(user))
    assert (inner["origin"], inner["state"], inner["model"]) == (
        "agent",
        "finished",
        "scripted-agent",
    )
    assert (inner["model_calls"], inner["input_tokens"], inner["output_tokens"]) == (2, 22, 14)
    around = await server.row(
        "SELECT * FROM agent_run WHERE id = ? AND finished_at IS NOT NULL", inner["outer_run"]
    )
    assert (around["message_id"], around["model_calls"]) == (inner["message_id"], 2)


async def test_the_operator_finds_the_agents_run_from_the_run_around_and_back(server, model):
    user, _ = await asked(server, model, "researcher", "Because it can.")
    (inner,) = server.rows(RUNS, str(user))
    cockpit = await asyncio.to_thread(Cockpit, server)
    addresses = [f"/admin/agent/run/{pk}/change/" for pk in (inner["outer_run"], inner["id"])]
    around, nested = [await asyncio.to_thread(cockpit.page, address) for address in addresses]
    cockpit.close()
    assert addresses[1] in around
    assert addresses[0] in nested
    assert "Because it can." in nested


async def test_an_agent_is_a_row_among_the_tools(server, model):
    (row,) = server.rows(
        "SELECT provider_name, timeout_seconds FROM tools_toolconfig WHERE name = 'thermometer'"
    )
    assert row == {"provider_name": "agents", "timeout_seconds": 180}


async def test_inside_an_agent_a_stranger_is_still_a_stranger(server, model):
    _, result = await asked(server, model, "researcher", call("open_vault"), "I may not.")
    assert result == "I may not."
    assert "没有权限" in results(model.requests[2])[0]


async def test_a_call_inside_an_agent_waits_for_the_owner_and_is_made_in_the_chat(server, model):
    user, owner = fresh_id(), fresh_id()
    model.script(["hello", call("researcher", request="pay"), "I asked."], model="scripted")
    model.script([call("transfer", amount=5), "It waits."], model="scripted-agent")
    async with client(server) as bot:
        await bot.say_private(owner, "hi")
        await bot.next_action()
        cockpit = await asyncio.to_thread(Cockpit, server)
        await asyncio.to_thread(cockpit.own, bot.self_id, str(owner))
        cockpit.close()
        await bot.say_private(user, "pay")
        (code,) = re.findall(r"批准 (\d{6})", spoken(await bot.next_action()))
        # The owner, who is not in this chat, is asked in his own.
        others = {spoken(await bot.next_action()), spoken(await bot.next_action())}
        assert "I asked." in others
        assert results(model.requests[-1]) == ["It waits."]
        model.script(["It is paid."], model="scripted")
        await bot.say_private(owner, f"批准 {code}")
        said = {
            (action["params"]["user_id"], spoken(action))
            for action in [await bot.next_action(), await bot.next_action()]
        }
    assert (user, "It is paid.") in said
    assert results(model.requests[-1]) == ["5 transferred"]


async def test_what_an_agents_tool_says_goes_to_the_chat_and_counts_as_said(server, model):
    user = fresh_id()
    model.script([call("researcher", request="go"), ""], model="scripted")
    model.script(
        [call("send_message", messages=[{"type": "plain", "text": "half way"}]), "done"],
        model="scripted-agent",
    )
    async with client(server) as bot:
        await bot.say_private(user, "hi")
        assert spoken(await bot.next_action()) == "half way"
        query = "SELECT state FROM agent_message WHERE sender_id = ? AND settled_at IS NOT NULL"
        assert (await server.row(query, str(user)))["state"] == "answered"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"degrees": 25}', '{"degrees": 25}'),
        ("warm", "thermometer"),
        ('{"degrees": "warm"}', "degrees"),
        (fails(400), "thermometer"),
    ],
)
async def test_an_agent_with_an_output_schema_gives_an_object_or_fails(server, model, answer, told):
    _, result = await asked(server, model, "thermometer", answer)
    assert told in result
    assert result.startswith("工具执行失败: ") == (told != answer)


async def test_agents_in_agents_end_at_the_third(server, model):
    again = call("researcher", request="you")
    user, result = await asked(
        server, model, "researcher", again, again, again, "three", "two", "one"
    )
    assert result == "one"
    assert "最多嵌套 3 层" in results(model.requests[4])[0]
    assert [row["final_text"] for row in server.rows(RUNS, str(user))] == ["one", "two", "three"]


async def test_the_time_of_the_run_around_ends_the_agents_run_too(server, model):
    user = fresh_id()
    model.script([call("researcher", request="go")], model="scripted")
    model.script([held("too late")], model="scripted-agent")
    async with client(server) as bot:
        await bot.say_private(user, "hi")
        assert "too late" not in spoken(await bot.next_action())
    (inner,) = server.rows(RUNS, str(user))
    assert (inner["state"], inner["error"]) == (
        "interrupted",
        "the tool call was stopped before the agent had finished",
    )


async def test_after_a_crash_the_answer_is_given_by_the_run_around_and_the_agent_is_not_asked_again(
    server, model
):
    user, account = fresh_id(), fresh_id()
    model.script([call("researcher", request="go"), "the end"], model="scripted")
    model.script([held("too late")], model="scripted-agent")
    async with FakeOneBot(server.ws_url, account, token=TOKEN) as bot:
        await bot.say_private(user, "hi")
        await model.wait_for_requests(2)
        assert await asyncio.to_thread(server.kill) == -signal.SIGKILL
    await asyncio.to_thread(server.start)
    async with FakeOneBot(server.ws_url, account, token=TOKEN) as bot:
        assert spoken(await bot.next_action()) == "the end"
        await bot.no_action(user=user)
    assert "请勿重复执行" in results(model.requests[-1])[0]
    (inner,) = server.rows(RUNS, str(user))
    around = "SELECT state FROM agent_run WHERE message_id = ? AND parent_id IS NULL"
    assert (inner["state"], server.rows(around, inner["message_id"])) == (
        "interrupted",
        [{"state": "finished"}],
    )
