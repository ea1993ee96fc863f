"""``wait_for_message``: the model lets time pass before it goes on."""

import math
import time
from datetime import datetime
from typing import Any

from django.utils import timezone

from agent.builtin_tools.entry import BuiltinTool
from agent.run.flow import ChatPauses, EndReason, RunFlow, build_end_result
from agent.run.message_sender import MessageSender
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.registry.time_limits import pause_timeouts

NAME = "wait"
DEFAULT_SECONDS = 30
LONGEST_SECONDS = 600
#: Waits in a row; another tool in between begins the count anew.
IN_A_ROW = 3


async def wait_for_message(
    invocation: ToolInvocation, context: ToolExecutionContext
) -> ToolExecutionResult:
    """Pause the run; its time limits stand still. A wait that a restart cut off goes on where it
    was."""
    flow: RunFlow = context.metadata["flow"]
    if flow.waits >= IN_A_ROW:
        result = build_end_result(
            NAME, EndReason.NO_ACTION, f"已连续等待 {IN_A_ROW} 次，不再等待，直到有新的消息。"
        )
        result.metadata["wait_limit_reached"] = True
        return result
    flow.waits += 1
    planned = parse_wait_seconds(invocation.arguments.get("seconds"))
    waited, is_broken = await _waited(planned, invocation.metadata.get("begun_at"), context)
    text = f"等待结束：计划 {planned:g} 秒，实际 {waited:.0f} 秒。"
    text += "有新的消息，提前结束了等待。" if is_broken else ""
    return ToolExecutionResult(
        NAME, success=True, content=text, metadata={"planned": planned, "waited": round(waited, 3)}
    )


async def _waited(
    planned: float, begun_at: datetime | None, context: ToolExecutionContext
) -> tuple[float, bool]:
    """Seconds waited in all, and whether a message ended the wait."""
    speaker: MessageSender = context.metadata["speaker"]
    pauses: ChatPauses = context.metadata["pauses"]
    before = max(0.0, (timezone.now() - begun_at).total_seconds()) if begun_at else 0.0
    begun = time.monotonic()
    is_broken = False
    if before < planned:
        with pause_timeouts():
            is_broken = await pauses.pause(
                speaker.chat, planned - before, breakable=context.is_group_chat is False
            )
    return before + time.monotonic() - begun, is_broken


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


TOOL = BuiltinTool(
    name=NAME,
    description="等待一段时间再继续。只在确实需要时使用，例如对方说稍等，或者话还没有说完。",
    parameters={
        "type": "object",
        "properties": {
            "seconds": {
                "description": f"等待的秒数，默认 {DEFAULT_SECONDS}，最多 {LONGEST_SECONDS}"
            }
        },
        "required": ["seconds"],
    },
    handler=wait_for_message,
    needs_chat=True,
    stage="both",
    traits=frozenset({"repeatable"}),
)
