"""What one task answers now, and how that is stopped without ending the task."""

import asyncio
from dataclasses import dataclass, field
from typing import cast

from agent.chat.merging import QueuedMessage
from agent.domain.states import MessageReason
from tools.time_limits import TIME_LIMITS

#: How long a stopped answer may take to end, in seconds; then the record alone keeps it from going
#: on.
STOP_SECONDS = TIME_LIMITS.stop


def _own_task() -> asyncio.Task[None]:
    return cast("asyncio.Task[None]", asyncio.current_task())


@dataclass(slots=True, eq=False)
class AnswerUnderWay:
    """A message that a task answers, or several of one person that it answers together. ``group``
    is empty once all of them were recalled."""

    group: list[QueuedMessage]
    task: asyncio.Task[None] = field(default_factory=_own_task)
    is_gathering: bool = False
    """Whether further messages are still awaited."""
    reason: MessageReason | None = None
    """Why it is stopped; None while it is not."""
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_only_stopped(self) -> bool:
        """Whether the task was cancelled for the stop, and for nothing else."""
        return self.reason is not None and self.task.cancelling() == 1

    @property
    def keys(self) -> set[int]:
        """Those of all its messages."""
        return {one.pk for job in self.group for one in (job, *job.earlier)}

    @property
    def askers(self) -> set[str]:
        """Who is answered."""
        return {one.pending.message.sender_id for one in self.group}

    async def stop(self, reason: MessageReason) -> bool:
        """Cancel what the task does now; True once that has ended, False if it does not end in
        time, or has ended without an end on record: then the task waits to try again."""
        if self._ended.is_set():
            self.reason = self.reason or reason
            return False
        if self.reason is None:
            self.reason = reason
            self.task.cancel()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    def end(self) -> None:
        """The task goes on to something else; where it was cancelled for the stop, it may."""
        if self.reason is not None:
            self.task.uncancel()
        self._ended.set()
