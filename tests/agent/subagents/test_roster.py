"""Agents that operators have made: known to ``use_subagent``, and tools of their own."""

import asyncio
from dataclasses import replace
from typing import Any

from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.builtin_tools.use_subagent import build_subagent_tool
from agent.domain.persona import Example, PersonaSettings, ToolChoice, environment_persona
from agent.llm.requests.base import LLMClient
from agent.subagents.provider import AgentRoster, SubagentToolProvider
from agent.subagents.runner import SubagentRunner
from tests.agent.agents import agent, offered
from tests.agent.talk import Script
from tests.tools.fakes import Provider
from tools.contract import ToolInvocation
from tools.registry.registry import ToolRegistry


def row(name: str = "poet", **fields: Any) -> PersonaSettings:
    usual = {"name": name, "description": f"Is {name}.", "prompt": f"I am row {name}"}
    return replace(environment_persona(), **usual | fields)


class House:
    """A registry with agents in code and in rows, which can be changed."""

    def __init__(self, *rows: PersonaSettings, answer: str = "done") -> None:
        self.rows = rows
        self.model, self.coder = Script(answer), Script("code")
        roster = AgentRoster([agent(self.coder, "Coder")], [agent(self.coder, "critic")], self.now)
        self.registry = ToolRegistry()
        runner = SubagentRunner(self.registry, None, self.choose)
        self.registry.register_provider(
            MaisakaBuiltinToolProvider([build_subagent_tool(roster, runner)])
        )
        self.registry.register_provider(Provider("tools", "f", "g"))
        self.registry.register_provider(SubagentToolProvider(roster, runner))
        self.asked: list[tuple[int, ...]] = []

    def now(self) -> tuple[PersonaSettings, ...]:
        return self.rows

    def choose(self, role: object, choice: Any = ()) -> LLMClient:
        self.asked.append(tuple(choice))
        return self.model

    async def names(self) -> list[str]:
        return [spec.name for spec in await self.registry.list_tools()]

    async def hand(self, name: str) -> str:
        call = ToolInvocation("use_subagent", {"subagent_name": name, "content": "a poem"})
        result = await self.registry.invoke(call)
        return result.content or result.error_message


async def test_a_row_is_described_and_asked_as_long_as_it_is_there():
    house = House()
    before = await house.registry.get_tool_spec("use_subagent")
    house.rows = (row(endpoints={"chat": (4,)}),)
    spec = await house.registry.get_tool_spec("use_subagent")
    assert before
    assert spec
    assert "poet（Is poet.）" in spec.description
    assert await house.hand("Poet") == "done"
    assert house.asked == [(4,)]
    house.rows = ()
    assert await house.registry.get_tool_spec("use_subagent") == before
    assert "没有名为" in await house.hand("Poet")


async def test_of_one_name_the_row_is_handed_the_work():
    house = House(row("Coder"))
    await house.hand("coder")
    assert house.model.requests
    assert not house.coder.requests


async def test_a_row_that_is_a_tool_comes_and_goes():
    house = House(row("quiet"))
    assert "quiet" not in await house.names()
    house.rows = (row("quiet", as_tool=True), row("critic", as_tool=True), row("诗", as_tool=True))
    assert [name for name in await house.names() if name in ("quiet", "critic", "诗")] == [
        "quiet",
        "critic",
    ]
    await house.registry.invoke(ToolInvocation("critic", {"request": "x"}))
    assert house.coder.requests  # the agent in code keeps its name
    house.rows = ()
    assert "quiet" not in await house.names()


async def test_an_agent_has_the_tools_and_examples_of_its_row():
    fields: dict[str, Any] = {
        "tool_choice": ToolChoice.EXCEPT,
        "tools": frozenset({"f", "use_subagent"}),
    }
    house = House(row(examples=(Example("hi", "yo"),), **fields))
    await house.hand("poet")
    assert offered(house.model) == ["g", "critic"]
    assert "用户：hi\n你：yo" in str(house.model.requests[0].messages[0]["content"])


async def test_an_agent_that_takes_longer_than_its_row_allows_is_ended():
    house = House(row(run_seconds=0.001))
    house.model.answers = [asyncio.get_running_loop().create_future()]
    assert "longer than 0.001 s" in await house.hand("poet")
