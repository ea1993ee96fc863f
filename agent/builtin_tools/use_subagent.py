"""``use_subagent``: a task handed to another agent by name."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import ToolExecutionContext, ToolInvocation
from tools.errors import ToolFailed
from tools.functions.function_tool import FunctionTool, tool
from tools.registry.catalogue import DefaultConfig


def build_subagent_tool(agents: Iterable[Subagent], runner: SubagentRunner) -> FunctionTool:
    """The tool that hands work to one of ``agents``, by name, in words."""
    by_name = {agent.name.casefold(): agent for agent in agents}
    names = "、".join(agent.name for agent in by_name.values())
    described = "、".join(f"{agent.name}（{agent.description}）" for agent in by_name.values())
    seconds = max((agent.seconds for agent in by_name.values()), default=60)

    @tool(
        name="use_subagent",
        description=f"把任务交给专门的子代理完成，可用的子代理：{described}。"
        "子代理需要较长时间，调用之前请先用 send_message 告诉用户已经派出子代理。",
        lenient=True,
        default_config=DefaultConfig(timeout_seconds=seconds),
    )
    async def use_subagent(
        context: ToolExecutionContext,
        invocation: ToolInvocation,
        subagent_name: Annotated[str, f"子代理的名字：{names}", Field(min_length=1)],
        content: Annotated[str, "交给子代理的任务说明或代码", Field(min_length=1)],
    ) -> str:
        wanted = subagent_name.strip()
        agent = by_name.get(wanted.casefold())
        if agent is None:
            raise ToolFailed(f"没有名为 {wanted} 的子代理，可用的有：{names}")
        text = await runner.ask(agent, content, invocation, context)
        return text or f"子代理 {agent.name} 没有给出内容"

    return use_subagent
