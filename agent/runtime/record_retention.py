"""How long the record, and counts of answers and tokens, are kept."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from agent.record.record import Record
from agent.record.settings.personas import load_longest_contexts
from agent.record.sums import activity, spendings, tallies
from agent.record.waiting import expiry
from agent.record.waiting.expiry import EraseResult
from tools.error_boundary import log_errors
from tools.local_time import today
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)

#: How often expired rows are erased, in seconds, and how long after the start for the first time.
EVERY_SECONDS = TIME_LIMITS.next_expiry
FIRST_SECONDS = TIME_LIMITS.first_expiry
#: The pause between two batches, in which others can use the database, in seconds.
PAUSE_SECONDS = 0.1

#: How long a count is kept that nothing is added to.
KEEP_COUNTS_FOR = timedelta(days=2)
#: How long it is known in what hour something happened.
KEEP_HOURS_FOR = timedelta(days=3)

EraseOperation = Callable[[datetime, int, int], EraseResult]


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Rows that are kept for some days; 0 for ever."""

    words: str
    erase: EraseOperation
    find_days: Callable[[], int]


def retention_rules() -> list[RetentionRule]:
    """What the agent itself has on record."""
    kinds = (
        ("messages", expiry.erase_messages),
        ("runs without a message", expiry.erase_runs),
        ("descriptions of media", expiry.erase_descriptions),
    )
    of_events = (
        ("events in chats", expiry.erase_chat_events),
        ("requests to be let in", expiry.erase_join_requests),
    )
    return [
        *(RetentionRule(*kind, lambda: settings.RECORD_KEEP_DAYS) for kind in kinds),
        *(RetentionRule(*kind, lambda: settings.EVENT_KEEP_DAYS) for kind in of_events),
    ]


def kept_history_limit(longest_context: int) -> int:
    """The newest messages of a chat that stay whatever their age: what the model is shown, by
    whatever persona, and what is still to be read."""
    unread = max(settings.SUMMARY_AFTER_MESSAGES, 2 * settings.MEMORY_EXTRACT_TURNS)
    return int(max(settings.MAX_CONTEXT_MESSAGES, longest_context) + unread)


async def run_record_expiry(record: Record, kinds: Sequence[RetentionRule]) -> None:
    """Erase what is too old for as long as this process lives."""
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        for kind in kinds:
            days = kind.find_days()
            with log_errors(logger, "Old %s could not be erased", kind.words):
                if days and (count := await erase_expired_rows(record, kind)):
                    logger.info("%d %s were erased, older than %d days", count, kind.words, days)
        await asyncio.sleep(EVERY_SECONDS)


async def erase_expired_rows(record: Record, kind: RetentionRule) -> int:
    """Erase all rows of ``kind`` that are too old, in batches; how many there were. After
    cancellation the next call continues."""
    kept = kept_history_limit(await record.submit_batched(load_longest_contexts, None))
    before = timezone.now() - timedelta(days=kind.find_days())
    count, after = 0, 0
    while True:
        erased = await record.submit(kind.erase, before, kept, after)
        count += erased.count
        if erased.after is None:
            return count
        after = erased.after
        await asyncio.sleep(PAUSE_SECONDS)


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
    while some := await record.submit(tallies.prune_tallies, *kept):
        count += some
    oldest = timezone.localtime(now - timedelta(days=spendings.KEPT_DAYS)).date()
    while await record.submit(spendings.prune_spendings, oldest.isoformat()):
        pass
    first_days = oldest.isoformat(), (today() - KEEP_HOURS_FOR).isoformat()
    while await record.submit(activity.prune_activity, *first_days):
        pass
    return count
