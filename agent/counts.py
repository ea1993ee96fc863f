"""How long counts of answers and tokens are kept."""

import asyncio
import logging
from datetime import timedelta

from django.utils import timezone

from agent.record import Record
from agent.store import spendings, tallies
from tools.boundary import survive

logger = logging.getLogger(__name__)

#: How often old counts are looked for, in seconds; how long one is kept that nothing is added to.
EVERY_SECONDS = 3600.0
KEPT = timedelta(days=2)


async def keep_forgetting(record: Record) -> None:
    """Delete old counts for as long as this process lives."""
    while True:
        with survive(logger, "Old counts of answers could not be deleted"):
            await forget_old(record)
        await asyncio.sleep(EVERY_SECONDS)


async def forget_old(record: Record) -> int:
    """Delete the counts of people and chats that were not answered for two days; how many there were."""
    now, count = timezone.now(), 0
    kept = int((now - KEPT).timestamp()), int((now + KEPT).timestamp())
    while some := await record.submit(tallies.forget, kept):
        count += some
    oldest = timezone.localtime(now - timedelta(days=spendings.KEPT_DAYS)).date()
    await record.submit(spendings.forget, oldest.isoformat())
    return count
