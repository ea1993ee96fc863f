"""How long our own copies of media are kept."""

import asyncio
import logging
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from agent.media.kept import KeptFiles
from agent.record import Record
from agent.store import media as store
from tools.boundary import survive

logger = logging.getLogger(__name__)

#: How often old copies are looked for, in seconds, and how long after the start for the first time.
EVERY_SECONDS = 3600.0
FIRST_SECONDS = 60.0
DAY = 86_400


async def keep_forgetting(record: Record, files: KeptFiles) -> None:
    """Delete old copies for as long as this process lives."""
    await asyncio.sleep(FIRST_SECONDS)
    while settings.MEDIA_KEEP_DAYS:
        with survive(logger, "Old copies of media could not be deleted"):
            if count := await forget_old(record, files, settings.MEDIA_KEEP_DAYS):
                logger.info("%d copies of media were deleted, unused for %d days", count, settings.MEDIA_KEEP_DAYS)
        await asyncio.sleep(EVERY_SECONDS)


async def forget_old(record: Record, files: KeptFiles, days: int) -> int:
    """Delete the copies that were not used for ``days``, rows first; how many there were.

    After cancellation a copy may be left that has no row; a later call finds it.
    """
    moment, count = timezone.now() - timedelta(days=days), 0
    while forgotten := await record.submit(store.forget_copies, moment):
        await asyncio.to_thread(_remove, files, forgotten)
        count += len(forgotten)
    return count + await _forget_unknown(record, files, days)


async def _forget_unknown(record: Record, files: KeptFiles, days: int) -> int:
    """Delete copies that no row names: their process died before it could say so."""
    old, count = await asyncio.to_thread(lambda: sorted(set(files.older_than(days * DAY)))), 0
    for start in range(0, len(old), store.PRUNE_BATCH):
        unknown = await record.submit(store.unknown_copies, old[start : start + store.PRUNE_BATCH])
        await asyncio.to_thread(_remove, files, unknown)
        count += len(unknown)
    return count


def _remove(files: KeptFiles, hashes: list[str]) -> None:
    for sha256 in hashes:
        files.remove(sha256)
