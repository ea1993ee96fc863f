"""``use_subagent``: a task handed to another agent by name."""

from collections.abc import Iterable

from agent.builtin_tools.entry import BuiltinTool
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.errors import ToolFailed

NAME = "use_subagent"


def build_subagent_tool(agents: Iterable[Subagent], runner: SubagentRunner) -> BuiltinTool:
    """The tool that hands work to one of ``agents``, by name, in words."""
    by_name = {agent.name.casefold(): agent for agent in agents}
    names = "、".join(agent.name for agent in by_name.values())
    described = "、".join(f"{agent.name}（{agent.description}）" for agent in by_name.values())

    async def use_subagent(
        invocation: ToolInvocation, context: ToolExecutionContext
    ) -> ToolExecutionResult:
        wanted = invocation.arguments["subagent_name"].strip()
        agent = by_name.get(wanted.casefold())
        if agent is None:
            raise ToolFailed(f"没有名为 {wanted} 的子代理，可用的有：{names}")
        text = await runner.ask(agent, invocation.arguments["content"], invocation, context)
        return ToolExecutionResult(
            NAME, success=True, content=text or f"子代理 {agent.name} 没有给出内容"
        )

    return BuiltinTool(
        name=NAME,
        description=f"把任务交给专门的子代理完成，可用的子代理：{described}。"
        "子代理需要较长时间，调用之前请先用 send_message 告诉用户已经派出子代理。",
        parameters={
            "type": "object",
            "properties": {
                "subagent_name": {
                    "type": "string",
                    "minLength": 1,
                    "description": f"子代理的名字：{names}",
                },
                "content": {
                    "type": "string",
                    "minLength": 1,
                    "description": "交给子代理的任务说明或代码",
                },
            },
            "required": ["subagent_name", "content"],
        },
        handler=use_subagent,
        timeout_seconds=max((agent.seconds for agent in by_name.values()), default=60),
    )
