"""Sums of activity for the days before they were kept, made in the background after a start."""

import asyncio
import logging

from agent.record.record import Record
from agent.record.sums import activity_history as history
from agent.runtime.record_retention import PAUSE_SECONDS
from tools.error_boundary import log_errors
from tools.local_time import today

logger = logging.getLogger(__name__)


async def fill_activity(record: Record) -> None:
    """Make the sums that are missing. After cancellation the next start goes on: a day has all of
    its sums or none."""
    with log_errors(logger, "Sums of earlier days could not be made"):
        now = today()
        for day in await record.submit(history.find_missing_days, now):
            await _fill_day(record, day, is_today=day.day == now.isoformat())
            await asyncio.sleep(PAUSE_SECONDS)


async def _fill_day(record: Record, day: history.PastDay, *, is_today: bool) -> None:
    if is_today:
        await record.submit(history.recount, day)
        return
    activity = history.Activity()
    for part in history.parts_of(day):
        activity.merge(await record.submit(history.count_rows, part))
        await asyncio.sleep(PAUSE_SECONDS)
    await record.submit(history.put_down, day.day, activity)
