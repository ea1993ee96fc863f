"""``use_subagent``: a task handed to another model with a prompt of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.builtin_tools.entry import BuiltinTool
from agent.errors import LLMError
from agent.llm.base import LLMClient, LLMRequest
from agent.prompt import system_message
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation

NAME = "use_subagent"


@dataclass(frozen=True, slots=True)
class Subagent:
    """A model with a fixed system prompt, without tools and without memory."""

    name: str
    system_prompt: str
    model: LLMClient

    async def ask(self, content: str) -> str:
        """The text of one answer. Raises :class:`agent.errors.LLMError`."""
        messages = [system_message(self.system_prompt), {"role": "user", "content": content}]
        return (await self.model.complete(LLMRequest(messages))).text


def tool(subagents: Mapping[str, Subagent]) -> BuiltinTool:
    """The tool that hands work to one of ``subagents``, by name."""
    names = "、".join(subagents)

    async def use_subagent(invocation: ToolInvocation, context: ToolExecutionContext) -> ToolExecutionResult:
        wanted = invocation.arguments["subagent_name"].strip()
        subagent = next((s for name, s in subagents.items() if name.casefold() == wanted.casefold()), None)
        if subagent is None:
            return _failure(f"没有名为 {wanted} 的子代理，可用的有：{names}")
        try:
            text = await subagent.ask(invocation.arguments["content"])
        except LLMError as error:
            return _failure(f"子代理 {subagent.name} 没有完成任务: {error}")
        return ToolExecutionResult(NAME, success=True, content=text or f"子代理 {subagent.name} 没有给出内容")

    return BuiltinTool(
        name=NAME,
        description=f"把任务交给专门的子代理完成，可用的子代理：{names}（Coder 擅长编写和解释代码）。"
        "子代理需要较长时间，调用之前请先用 send_message 告诉用户已经派出子代理。",
        parameters={
            "type": "object",
            "properties": {
                "subagent_name": {"type": "string", "minLength": 1, "description": f"子代理的名字：{names}"},
                "content": {"type": "string", "minLength": 1, "description": "交给子代理的任务说明或代码"},
            },
            "required": ["subagent_name", "content"],
        },
        handler=use_subagent,
        timeout_seconds=180,
    )


def _failure(text: str) -> ToolExecutionResult:
    return ToolExecutionResult(NAME, success=False, error_message=text)
