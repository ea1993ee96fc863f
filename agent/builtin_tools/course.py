"""The tools with which the model ends its turn, or leaves the timing gate."""

from agent.run.flow import CONTINUE, EndReason, build_end_result
from tools.contract import ToolExecutionResult
from tools.functions.function_tool import tool


@tool(
    name="finish",
    description="结束本轮思考，等待新的消息。只在要说的话已经用工具发送完毕时使用；"
    "这之后不会再发送任何内容。普通回答之后不需要调用。",
    lenient=True,
    needs_chat=True,
    traits=("ends_run",),
)
async def finish_turn() -> ToolExecutionResult:
    return build_end_result("finish", EndReason.FINISH, "本轮已结束。")


@tool(
    name="no_action",
    description="现在什么都不做，直到有新的消息。只在对方显然还没说完、或稍后再回应更好时使用。",
    lenient=True,
    needs_chat=True,
    stage="both",
    traits=("ends_run",),
)
async def take_no_action() -> ToolExecutionResult:
    return build_end_result("no_action", EndReason.NO_ACTION, "暂不行动，等待新的消息。")


@tool(
    name=CONTINUE,
    description="现在就思考并回应。",
    lenient=True,
    needs_chat=True,
    stage="timing",
)
async def continue_turn() -> ToolExecutionResult:
    return ToolExecutionResult(
        CONTINUE, success=True, content="继续。", metadata={"timing_action": "continue"}
    )


@tool(
    name="stay_silent",
    description="保持沉默：不回复这条消息，本轮什么都不发送。只在这条消息显然不需要回应时使用。"
    "必须单独调用，不能与其他工具一起调用。",
    lenient=True,
    needs_chat=True,
    traits=("ends_run", "exclusive"),
)
async def stay_silent() -> ToolExecutionResult:
    return build_end_result("stay_silent", EndReason.STAY_SILENT, "保持沉默。")
