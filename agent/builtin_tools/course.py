"""The tools with which the model ends its turn, or leaves the timing gate."""

from typing import Any

from agent.builtin_tools.entry import BuiltinHandler, BuiltinTool, ToolStage
from agent.run.flow import CONTINUE as CONTINUE_NAME
from agent.run.flow import EndReason, build_end_result
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def _ending(end: EndReason, text: str) -> BuiltinHandler:
    async def handle(
        invocation: ToolInvocation, context: ToolExecutionContext
    ) -> ToolExecutionResult:
        return build_end_result(invocation.tool_name, end, text)

    return handle


async def _go_on(invocation: ToolInvocation, context: ToolExecutionContext) -> ToolExecutionResult:
    return ToolExecutionResult(
        invocation.tool_name, success=True, content="继续。", metadata={"timing_action": "continue"}
    )


def _tool(
    name: str, description: str, handler: BuiltinHandler, stage: ToolStage, *traits: str
) -> BuiltinTool:
    return BuiltinTool(
        name, description, NOTHING, handler, needs_chat=True, stage=stage, traits=frozenset(traits)
    )


FINISH = _tool(
    "finish",
    "结束本轮思考，等待新的消息。只在要说的话已经用工具发送完毕时使用；这之后不会再发送任何内容。普通回答之后不需要调用。",
    _ending(EndReason.FINISH, "本轮已结束。"),
    "action",
    "ends_run",
)
NO_ACTION = _tool(
    "no_action",
    "现在什么都不做，直到有新的消息。只在对方显然还没说完、或稍后再回应更好时使用。",
    _ending(EndReason.NO_ACTION, "暂不行动，等待新的消息。"),
    "both",
    "ends_run",
)
CONTINUE = _tool(CONTINUE_NAME, "现在就思考并回应。", _go_on, "timing")
STAY_SILENT = _tool(
    "stay_silent",
    "保持沉默：不回复这条消息，本轮什么都不发送。只在这条消息显然不需要回应时使用。必须单独调用，不能与其他工具一起调用。",
    _ending(EndReason.STAY_SILENT, "保持沉默。"),
    "action",
    "ends_run",
    "exclusive",
)
