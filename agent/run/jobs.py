"""Work that continues after the run that began it: tracked, limited, and ended with the process."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from agent.domain.states import ToolCallState
from agent.record.record import Record
from agent.record.runs.deferred_calls import (
    INTERRUPTED,
    CallCompletion,
    ProgressReport,
    complete_calls,
    record_progress,
)
from agent.record.runs.steps import CallOutcome
from agent.run.call_stops import build_stopped_result, call_under_way
from agent.run.tool_results import call_outcome, following_messages, result_text
from tools.contract import ToolExecutionResult
from tools.error_boundary import log_errors
from tools.text.storable import make_storable

logger = logging.getLogger(__name__)

#: Tool calls that one process works on at a time after their runs.
LIMIT = 100
#: How often one call may announce its progress in the chat.
TELL_LIMIT = 20
PROGRESS_LIMIT = 2_000

CallTask = asyncio.Task[ToolExecutionResult]


class BackgroundCalls:
    """The long-running tool calls of this process.

    ``wake`` is called with the account whose chats have something new to answer.
    """

    def __init__(self, record: Record, wake: Callable[[str], None]) -> None:
        self._record = record
        self.wake = wake
        self._tasks: dict[asyncio.Task[None], CallTask] = {}

    @property
    def worker(self) -> str:
        """The name under which the record knows who works on a call."""
        return self._record.process_id

    @property
    def is_full(self) -> bool:
        return len(self._tasks) >= LIMIT

    def watch_call(
        self, work: CallTask, pk: int, account: str, *, begun: float, can_see: bool
    ) -> None:
        """Run ``work`` to its end, record the call's outcome, and announce it in its chat.

        ``begun`` is when it began, in monotonic seconds.
        """
        seen = self._see_through(work, pk, account, begun=begun, can_see=can_see)
        task = asyncio.get_running_loop().create_task(seen, name=f"call {pk}")
        self._tasks[task] = work
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def progress_reporter(self, pk: int, account: str) -> Callable[[str, bool], None]:
        """A tool reports its progress to this function, from any thread."""
        loop, told = asyncio.get_running_loop(), 0

        def report(text: str, tell: bool) -> None:
            nonlocal told
            number = told if tell and told < TELL_LIMIT else None
            told += number is not None
            progress = ProgressReport(pk, make_storable(text[:PROGRESS_LIMIT]), number)
            loop.call_soon_threadsafe(self._note, progress, account)

        return report

    async def drain(self, seconds: float) -> None:
        """Give running work ``seconds``, then cancel it; how it ended is on record."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for work in list(self._tasks.values()):
            work.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _see_through(
        self, work: CallTask, pk: int, account: str, *, begun: float, can_see: bool
    ) -> None:
        with call_under_way(pk, work.cancel) as call:
            await asyncio.wait([work])
        took = round((time.monotonic() - begun) * 1000)
        completion = _completion(pk, work, took, can_see=can_see, is_stopped=call.is_stopped)
        with log_errors(logger, "What came of tool call %s could not be recorded", pk):
            if await self._record.submit(complete_calls, completion):
                self.wake(account)

    def _note(self, progress: ProgressReport, account: str) -> None:
        self._record.submit(record_progress, progress).add_done_callback(
            partial(self._noted, progress, account)
        )

    def _noted(
        self, progress: ProgressReport, account: str, future: "asyncio.Future[None]"
    ) -> None:
        if future.cancelled():
            return
        if error := future.exception():
            logger.warning(
                "The progress of tool call %s could not be recorded: %s", progress.pk, error
            )
        elif progress.number is not None:
            self.wake(account)


def _completion(
    pk: int, work: CallTask, duration_ms: int, *, can_see: bool, is_stopped: bool
) -> CallCompletion:
    if work.cancelled() and is_stopped:
        result = build_stopped_result("")
        return CallCompletion(call_outcome(pk, result, result.content, duration_ms))
    if (
        work.cancelled() or work.exception() is not None
    ):  # the registry makes a result of everything else
        return CallCompletion(
            CallOutcome(
                pk, ToolCallState.UNKNOWN, "", False, INTERRUPTED, None, INTERRUPTED, duration_ms
            )
        )
    result = work.result()
    text = result_text(f"later-{pk}", result, can_see=can_see)
    following = list(following_messages(f"later-{pk}", result, can_see=can_see))
    return CallCompletion(call_outcome(pk, result, text, duration_ms), following)
