"""``wait``: the model waits for some time before it continues."""

import math
import time
from typing import Annotated, Any

from django.utils import timezone

from agent.run.flow import EndReason, build_end_result
from agent.run.services import get_sender, get_services
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.functions.function_tool import tool
from tools.registry.time_limits import pause_timeouts

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
