"""When the next reminder is due: one task that sleeps until then, and none while there is
nothing to wait for."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from datetime import datetime

from django.utils import timezone

from agent.record.record import Record
from agent.record.reminders.firing import Firing
from agent.record.sums.quotas import AnswerQuotas
from tools.error_boundary import log_errors
from tools.processes import crash_points
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)


class ReminderClock:
    """Fires what is due for the accounts of this process. Used from one event loop.

    ``resume`` is called with each account that has something to say.
    """

    def __init__(
        self,
        record: Record,
        quotas: AnswerQuotas,
        accounts: Collection[str],
        resume: Callable[[str], None],
    ) -> None:
        self._record = record
        self._firing = Firing(record.run_starter, quotas)
        self._accounts = accounts
        self._resume = resume
        self._change = asyncio.Event()
        self._is_afresh = False
        self._next_at: datetime | None = None
        self._is_under_way = False
        self._task: asyncio.Task[None] | None = None

    def look(self, *, afresh: bool = False) -> None:
        """Something may be due, or due at another time. Returns at once. ``afresh``: what quiet
        hours put off is judged again."""
        self._is_afresh |= afresh
        self._change.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="reminders")

    def check_time(self) -> None:
        """To be called now and then: look where the clock has passed the next instant unnoticed,
        since it was put forward or the machine was asleep, and while something is being said."""
        is_due = self._next_at is not None and timezone.now() >= self._next_at
        if is_due or self._is_under_way:
            self.look()

    async def close(self) -> None:
        """End. What is due is on record."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        is_waiting = True
        while is_waiting or self._change.is_set():
            self._change.clear()
            afresh, self._is_afresh = self._is_afresh, False
            seconds: float | None = TIME_LIMITS.turn_pause  # where the database refuses
            with log_errors(logger, "Reminders that are due could not be looked up"):
                found = await self._record.submit(
                    self._firing.fire_due, frozenset(self._accounts), afresh
                )
                is_waiting, self._next_at, seconds = found.is_waiting, found.next_at, None
                self._is_under_way = found.is_under_way
                if found.accounts:
                    crash_points.hit_crash_point("reminder_fired")
                for account in found.accounts:
                    self._resume(account)
            if is_waiting:
                await self._sleep(seconds)

    async def _sleep(self, seconds: float | None) -> None:
        """Until the next instant, or ``seconds`` where they are given, or a change."""
        if seconds is None and self._next_at is not None:
            seconds = max(0.0, (self._next_at - timezone.now()).total_seconds())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._change.wait()
