"""How long our own copies of media are kept."""

import asyncio
import logging
import time
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from agent.media import media_store as store
from agent.media.file_store import FileStore
from agent.record.record import Record
from tools.error_boundary import log_errors
from tools.log_limit import LogLimit

logger = logging.getLogger(__name__)
LogLimit(logger)

#: How often old copies are searched, in seconds, and how long after the start for the first time.
EVERY_SECONDS = 3600.0
FIRST_SECONDS = 60.0
DAY = 86_400
#: How often the number of copies is checked, in seconds.
LOOK_SECONDS = 2.0
#: The share that is deleted beyond the limit, so that not every new copy needs a check of all.
SPARE = 0.1
#: An unfinished file is kept for so many seconds.
SPARED_SECONDS = 3600.0


async def run_copy_expiry(record: Record, files: FileStore) -> None:
    """Delete old copies for as long as this process lives."""
    await asyncio.sleep(FIRST_SECONDS)
    while settings.MEDIA_KEEP_DAYS:
        with log_errors(logger, "Old copies of media could not be deleted"):
            if count := await prune_copies_by_age(record, files, settings.MEDIA_KEEP_DAYS):
                logger.info(
                    "%d copies of media were deleted, unused for %d days",
                    count,
                    settings.MEDIA_KEEP_DAYS,
                )
        await asyncio.sleep(EVERY_SECONDS)


async def run_copy_size_limit(record: Record, files: FileStore, limit: int) -> None:
    """Delete the copies that were not used for longest whenever all together take more than
    ``limit`` bytes.

    What is on the disk counts, so that it does not matter who wrote it, and which of it is on
    record.
    """
    size, written, measured_at = limit, files.written, -EVERY_SECONDS
    while limit:
        with log_errors(logger, "The copies of media could not be kept within MEDIA_KEEP_GIB"):
            if (
                size + files.written - written > limit
                or time.monotonic() - measured_at > EVERY_SECONDS
            ):
                written, measured_at = files.written, time.monotonic()
                size = await prune_copies_by_size(record, files, limit)
        await asyncio.sleep(LOOK_SECONDS)


async def prune_copies_by_size(record: Record, files: FileStore, limit: int) -> int:
    """Delete what was not used for longest until the rest takes less than ``limit`` bytes, with
    some to spare; what it takes."""
    stored = await asyncio.to_thread(files.stored)
    size, going, young = sum(one.size for one in stored), [], time.time() - SPARED_SECONDS
    wanted = limit * (1 - SPARE) if size > limit else size
    for one in stored:
        if size <= wanted or (one.used_at > young and not one.is_whole):
            continue
        going.append(one.sha256)
        size -= one.size
    for start in range(0, len(going), store.PRUNE_BATCH):
        batch = going[start : start + store.PRUNE_BATCH]
        await record.submit(store.forget_hashes, batch)
        await asyncio.to_thread(_remove, files, batch)
    if going:
        logger.info(
            "%d copies of media were deleted: together they took more than MEDIA_KEEP_GIB",
            len(going),
        )
    return size


async def prune_copies_by_age(record: Record, files: FileStore, days: int) -> int:
    """Delete the copies that were not used for ``days``, rows first; how many there were.

    After cancellation a copy may be left that has no row; a later call finds it.
    """
    moment, count = timezone.now() - timedelta(days=days), 0
    while forgotten := await record.submit(store.forget_copies, moment):
        await asyncio.to_thread(_remove, files, forgotten)
        count += len(forgotten)
    return count + await _forget_unknown(record, files, days)


async def _forget_unknown(record: Record, files: FileStore, days: int) -> int:
    """Delete copies that no row names: their process died before it could say so."""
    old, count = await asyncio.to_thread(lambda: sorted(set(files.older_than(days * DAY)))), 0
    for start in range(0, len(old), store.PRUNE_BATCH):
        unknown = await record.submit(store.unknown_copies, old[start : start + store.PRUNE_BATCH])
        await asyncio.to_thread(_remove, files, unknown)
        count += len(unknown)
    return count


def _remove(files: FileStore, hashes: list[str]) -> None:
    for sha256 in hashes:
        files.remove(sha256)
