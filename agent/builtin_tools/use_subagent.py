"""``use_subagent``: a task handed to another agent by name."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from agent.subagents.provider import AgentRoster
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import ToolExecutionContext, ToolFailed, ToolInvocation, ToolSpec
from tools.functions.function_tool import FunctionTool, tool
from tools.registry.catalogue import DefaultConfig

Agents = Mapping[str, Subagent]


def build_subagent_tool(
    agents: Iterable[Subagent] | AgentRoster, runner: SubagentRunner
) -> FunctionTool:
    """The tool that hands work to one of ``agents``, by name, in words. Its declaration names those
    that there are at the moment."""
    roster = agents if isinstance(agents, AgentRoster) else AgentRoster(named=agents)
    seconds = max((agent.seconds for agent in roster.named), default=60)
    declared = LiveDeclaration(roster)

    @tool(
        name="use_subagent",
        description=_description(roster.by_name()),
        lenient=True,
        default_config=DefaultConfig(timeout_seconds=seconds),
        describe_now=declared.describe,
    )
    async def use_subagent(
        context: ToolExecutionContext,
        invocation: ToolInvocation,
        subagent_name: Annotated[str, _name_description(roster.by_name()), Field(min_length=1)],
        content: Annotated[str, "交给子代理的任务说明或代码", Field(min_length=1)],
    ) -> str:
        wanted, by_name = subagent_name.strip(), roster.by_name()
        agent = by_name.get(wanted.casefold())
        if agent is None:
            raise ToolFailed(f"没有名为 {wanted} 的子代理，可用的有：{_names(by_name)}")
        text = await runner.ask(agent, content, invocation, context)
        return text or f"子代理 {agent.name} 没有给出内容"

    return use_subagent


class LiveDeclaration:
    """The declaration with the agents of ``roster`` as they are now."""

    def __init__(self, roster: AgentRoster) -> None:
        self._roster = roster
        self._agents = roster.by_name()
        self._made: tuple[ToolSpec, ToolSpec] | None = None

    def describe(self, spec: ToolSpec) -> ToolSpec:
        agents = self._roster.by_name()
        if self._made is None or self._made[0] is not spec or agents is not self._agents:
            schema = deepcopy(spec.parameters_schema or {})
            schema["properties"]["subagent_name"]["description"] = _name_description(agents)
            made = replace(spec, description=_description(agents), parameters_schema=schema)
            self._made, self._agents = (spec, made), agents
        return self._made[1]


def _names(agents: Agents) -> str:
    return "、".join(agent.name for agent in agents.values())


def _name_description(agents: Agents) -> str:
    return f"子代理的名字：{_names(agents)}"


def _description(agents: Agents) -> str:
    described = "、".join(f"{agent.name}（{agent.description}）" for agent in agents.values())
    return (
        f"把任务交给专门的子代理完成，可用的子代理：{described}。"
        "子代理需要较长时间，调用之前请先用 send_message 告诉用户已经派出子代理。"
    )
