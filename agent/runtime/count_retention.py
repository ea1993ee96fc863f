"""How long counts of answers and tokens are kept."""

import asyncio
import logging
from datetime import timedelta

from django.utils import timezone

from agent.record import spendings, tallies
from agent.record.record import Record
from tools.error_boundary import log_errors

logger = logging.getLogger(__name__)

#: How often old counts are looked for, in seconds; how long one is kept that nothing is added to.
EVERY_SECONDS = 3600.0
KEEP_COUNTS_FOR = timedelta(days=2)


async def run_count_pruning(record: Record) -> None:
    """Delete old counts for as long as this process lives."""
    while True:
        with log_errors(logger, "Old counts of answers could not be deleted"):
            await prune_counts(record)
        await asyncio.sleep(EVERY_SECONDS)


async def prune_counts(record: Record) -> int:
    """Delete the counts of people and chats that were not answered for two days; how many there
    were."""
    now, count = timezone.now(), 0
    kept = int((now - KEEP_COUNTS_FOR).timestamp()), int((now + KEEP_COUNTS_FOR).timestamp())
    while some := await record.submit(tallies.prune_tallies, kept):
        count += some
    oldest = timezone.localtime(now - timedelta(days=spendings.KEPT_DAYS)).date()
    await record.submit(spendings.prune_spendings, oldest.isoformat())
    return count
