"""The tools with which the model ends its turn, leaves the timing gate or waits; their provider."""

import math
import time
from collections.abc import Iterable
from typing import Annotated, Any

from django.utils import timezone

from agent.run.services import get_sender, get_services
from agent.run.tool_results import CONTINUE, PROVIDER_NAME, EndReason, build_end_result
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.functions.function_tool import FunctionProvider, FunctionTool, tool
from tools.registry.execution import pause_timeouts

PROVIDER_TYPE = "builtin"


class MaisakaBuiltinToolProvider(FunctionProvider):
    """Function tools under the name by which the loop knows its own."""

    def __init__(self, tools: Iterable[FunctionTool]) -> None:
        super().__init__(PROVIDER_NAME, PROVIDER_TYPE, tools)


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


DEFAULT_SECONDS = 30
LONGEST_SECONDS = 600
#: Waits in a row; another tool in between resets the count.
IN_A_ROW = 3


@tool(
    name="wait",
    description="等待一段时间再继续。只在确实需要时使用，例如对方说稍等，或者话还没有说完。",
    lenient=True,
    needs_chat=True,
    stage="both",
    traits=("repeatable",),
)
async def wait_for_message(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    seconds: Annotated[Any, f"等待的秒数，默认 {DEFAULT_SECONDS}，最多 {LONGEST_SECONDS}"],
) -> ToolExecutionResult:
    """Pause the run and its time limits. A wait that a restart interrupted continues where it
    was."""
    services = get_services(context)
    if services.flow.waits >= IN_A_ROW:
        result = build_end_result(
            "wait", EndReason.NO_ACTION, f"已连续等待 {IN_A_ROW} 次，不再等待，直到有新的消息。"
        )
        result.metadata["wait_limit_reached"] = True
        return result
    services.flow.waits += 1
    planned, waited, is_broken = parse_wait_seconds(seconds), 0.0, False
    if invocation.begun_at:
        waited = max(0.0, (timezone.now() - invocation.begun_at).total_seconds())
    began = time.monotonic()
    if waited < planned:
        with pause_timeouts():
            is_broken = await services.pauses.pause(
                get_sender(context).chat,
                planned - waited,
                breakable=context.is_group_chat is False,
            )
    waited += time.monotonic() - began
    text = f"等待结束：计划 {planned:g} 秒，实际 {waited:.0f} 秒。"
    text += "有新的消息，提前结束了等待。" if is_broken else ""
    return ToolExecutionResult(
        "wait",
        success=True,
        content=text,
        metadata={"planned": planned, "waited": round(waited, 3)},
    )


def parse_wait_seconds(value: Any) -> float:
    """The seconds that ``value`` means: what is no number is 30, less than nothing is 0, more than
    600 is 600."""
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    except OverflowError:  # of a whole number with more digits than a float can hold
        number = math.copysign(math.inf, value > 0 or -1)
    return DEFAULT_SECONDS if math.isnan(number) else min(max(number, 0), LONGEST_SECONDS)
