"""Single tool calls that are stopped while they are under way. The run that made one goes on.

An operator's wish is put on record first (:mod:`agent.record.waiting.call_stops`); each process
looks which of its own calls are meant. The call ends as one that is broken off from outside: it may
have had its effect.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from agent.record.waiting.call_stops import STOPPED
from tools.contract import ToolExecutionResult

#: What the model is told of such a call.
TOLD = "工具执行失败: 管理员停止了这次调用，它可能已经生效。请勿重复执行，请告诉用户。"


@dataclass(eq=False, slots=True)
class CallUnderWay:
    """A call that this process works on; ``cancel`` ends it, on the loop."""

    cancel: Callable[[], object]
    is_stopped: bool = False


calls_under_way: dict[int, CallUnderWay] = {}
"""Those of this process, by their keys."""


@contextmanager
def call_under_way(pk: int, cancel: Callable[[], object]) -> Iterator[CallUnderWay]:
    """Inside, the call with the key ``pk`` can be stopped."""
    call = calls_under_way[pk] = CallUnderWay(cancel)
    try:
        yield call
    finally:
        if calls_under_way.get(pk) is call:
            del calls_under_way[pk]


async def run_stoppable(
    pk: int, tool_name: str, work: Coroutine[Any, Any, ToolExecutionResult]
) -> ToolExecutionResult:
    """The result of ``work``, or that an operator has stopped it: it was cancelled then. A call
    that is not on record has the key 0, and is not stopped."""
    if not pk:
        return await work
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)
    with call_under_way(pk, lambda: limit.reschedule(loop.time())) as call:
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not call.is_stopped:
                raise
    return build_stopped_result(tool_name)


def build_stopped_result(tool_name: str) -> ToolExecutionResult:
    """What became of a call that was stopped; nobody knows whether it had its effect."""
    return ToolExecutionResult(
        tool_name, success=False, content=TOLD, error_message=STOPPED, metadata={"stopped": True}
    )


def stop_calls(pks: Collection[int]) -> None:
    """Stop those of ``pks`` that are under way in this process. To be called on its loop."""
    for pk in pks:
        call = calls_under_way.get(pk)
        if call is not None and not call.is_stopped:
            call.is_stopped = True
            call.cancel()
