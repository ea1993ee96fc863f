"""The media of messages on record: the outcome of each, the text read from it, and which copies to
delete."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from agent.domain.types import ChatAddress, MediaRef
from agent.media.file_store import FileStore, StoredFile
from agent.models import Description, KeptFile, Message, MessageMedia
from agent.record.chats import early_recalls
from agent.record.chats.chat_record import has_quoted_media, is_undone
from agent.record.chats.quoted_words import blank_quoted, find_quoted_ids
from agent.record.record import Record
from tools.error_boundary import LogLimit, log_errors
from tools.tasks import end_tasks

#: Copies that are forgotten in one transaction.
PRUNE_BATCH = 500


@dataclass(frozen=True, slots=True)
class MediaRow:
    """The outcome of one medium; ``sha256`` is "" if it could not be fetched, for ``reason``."""

    ref: MediaRef
    sha256: str = ""
    mime: str = ""
    size: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DescriptionKey:
    """What is asked of which content: the key of a :class:`agent.models.Description`."""

    content: str
    prompt_kind: str
    model: str
    files: tuple[str, ...] = field(default=(), compare=False)
    """The hashes of the files that ``content`` stands for, where they are several."""

    @property
    def hashes(self) -> tuple[str, ...]:
        return self.files or (self.content,)


@dataclass(frozen=True, slots=True)
class NewDescription:
    """A model's words, ready to be kept."""

    question: DescriptionKey
    text: str
    input_tokens: int = 0
    output_tokens: int = 0


def record_media(items: Sequence[tuple[int, Sequence[MediaRow]]]) -> list[None]:
    """Record, for messages by key, the outcome of their media; earlier rows are replaced."""
    now = timezone.now()
    MessageMedia.objects.filter(message_id__in=[pk for pk, _ in items]).delete()
    kept = keep_copies([row for _, rows in items for row in rows if row.sha256], now)
    MessageMedia.objects.bulk_create(
        MessageMedia(
            message_id=pk,
            position=position,
            kind=row.ref.kind,
            origin=row.ref.origin,
            name=row.ref.name[:200],
            reason=row.reason,
            kept_id=kept.get(row.sha256),
            created_at=now,
        )
        for pk, rows in items
        for position, row in enumerate(rows)
    )
    return [None] * len(items)


def keep_copies(copies: Iterable[MediaRow | StoredFile], now: datetime) -> dict[str, int]:
    """The keys of the rows of ``copies`` by hash; those that are new are added, the others were
    used just now."""
    new = {
        one.sha256: KeptFile(
            sha256=one.sha256, mime=one.mime, size=one.size, created_at=now, last_used_at=now
        )
        for one in copies
    }
    if not new:
        return {}
    KeptFile.objects.bulk_create(
        new.values(),
        update_conflicts=True,
        unique_fields=["sha256"],
        update_fields=["last_used_at"],
    )
    return dict(KeptFile.objects.filter(sha256__in=new).values_list("sha256", "pk"))


def load_media(message_pks: Sequence[int]) -> list[list[MediaRow]]:
    """What is on record of the media of each message, in order."""
    found: dict[int, list[MediaRow]] = {pk: [] for pk in message_pks}
    rows = (
        MessageMedia.objects.filter(message_id__in=found)
        .select_related("kept")
        .order_by("message_id", "position")
    )
    for row in rows:
        ref = MediaRef(row.kind, name=row.name, origin=row.origin)  # type: ignore[arg-type] # both are from a ref
        kept = row.kept
        found[row.message_id].append(
            MediaRow(ref, kept.sha256, kept.mime, kept.size)
            if kept
            else MediaRow(ref, reason=row.reason)
        )
    return [found[pk] for pk in message_pks]


def load_segments(session_pk: int, message_id: str) -> list[dict[str, object]] | None:
    """The segments of the newest message of a session with a client's id; None for one that is not
    on record, none for one that was recalled or undone."""
    rows = Message.objects.filter(session_id=session_pk, message_id=message_id).order_by("-pk")
    row = rows.only("segments", "recalled_at", "in_history").first()
    return None if row is None else [] if row.recalled_at or is_undone(row) else row.segments


def find_descriptions(questions: Sequence[DescriptionKey]) -> list[tuple[int, str] | None]:
    """For each question, key and text of the description that answers it; None for one that was
    never asked."""
    asked = Q()
    for question in questions:
        asked |= Q(content=question.content, prompt_kind=question.prompt_kind, model=question.model)
    rows = Description.objects.filter(asked).order_by()
    known = {
        DescriptionKey(row.content, row.prompt_kind, row.model): (row.pk, row.text) for row in rows
    }
    return [known.get(question) for question in questions]


def add_descriptions(item: NewDescription) -> int:
    """Keep a description, in the place of an older one of the same question; its key."""
    question = item.question
    fields = {"text": item.text, "files": len(question.hashes), "created_at": timezone.now()}
    tokens = {"input_tokens": item.input_tokens, "output_tokens": item.output_tokens}
    row, _ = Description.objects.update_or_create(
        content=question.content,
        prompt_kind=question.prompt_kind,
        model=question.model[:200],
        defaults={**fields, **tokens},
    )
    return row.pk


def link_description(message_pk: int, question: DescriptionKey) -> None:
    """Note that a message's copies of a question's content were given the answer on record."""
    answer = Description.objects.filter(
        content=question.content, prompt_kind=question.prompt_kind, model=question.model
    )
    pk = answer.values_list("pk", flat=True).first()
    MessageMedia.objects.filter(message_id=message_pk, kept__sha256__in=question.hashes).update(
        description_id=pk
    )


@dataclass(frozen=True, slots=True)
class HeardText:
    """What was read in the media of a message of ``chat``, and the fenced words of what it quotes
    and forwards; "" for nothing. ``header``: with names that were found since, None as it is."""

    message_pk: int
    session_pk: int
    chat: ChatAddress
    media_text: str = ""
    context_text: str = ""
    quoted_id: str = ""
    header: dict[str, object] | None = None


def save_heard_texts(heard: HeardText) -> HeardText:
    """Keep with a message what was heard beside its words: later runs are shown it in their
    history. What is kept is returned: without what messages said that were recalled meanwhile."""
    kept = _without_recalled(heard)
    told: dict[str, object] = {
        "media_text": kept.media_text,
        "context_text": kept.context_text,
        "header": kept.header,
    }
    new = {name: value for name, value in told.items() if value}
    Message.objects.filter(pk=kept.message_pk).update(**new)
    return kept


def _without_recalled(heard: HeardText) -> HeardText:
    ids = {heard.quoted_id, *find_quoted_ids(heard.context_text)} - {""}
    if not ids:
        return heard
    said = Message.objects.filter(session_id=heard.session_pk, message_id__in=ids)
    gone = Q(recalled_at__isnull=False) | Q(undo_steps__isnull=False)
    rows = said.filter(gone).order_by()
    recalled, now = set(rows.values_list("message_id", flat=True)), timezone.now()
    recalled |= {one for one in ids if early_recalls.was_recalled(heard.chat, one, now)}
    context, media = heard.context_text, heard.media_text
    for message_id in recalled:
        context = blank_quoted(context, message_id)
    if heard.quoted_id in recalled and has_quoted_media(heard.message_pk):
        media = ""
    return replace(heard, media_text=media, context_text=context)


def forget_copies(before: datetime) -> list[str]:
    """Forget copies that were used last before a moment, oldest first, :data:`PRUNE_BATCH` at most;
    their hashes."""
    old = KeptFile.objects.filter(last_used_at__lt=before).order_by("last_used_at")
    rows = dict(old.values_list("pk", "sha256")[:PRUNE_BATCH])
    KeptFile.objects.filter(pk__in=rows).delete()
    return list(rows.values())


def forget_hashes(hashes: Sequence[str]) -> None:
    """Forget copies, whatever names them."""
    KeptFile.objects.filter(sha256__in=hashes).delete()


def load_fetched_bytes(platform: str, person: str, since: datetime) -> list[tuple[datetime, int]]:
    """When something was fetched for a person of a platform since, and how many bytes it has."""
    said = MessageMedia.objects.filter(
        message__sender_id=person, message__direction=Message.Direction.IN
    )
    recent = said.filter(
        message__session__platform=platform, message__created_at__gte=since, kept__isnull=False
    ).order_by("message__created_at")
    return list(recent.values_list("message__created_at", "kept__size"))


def unknown_copies(hashes: Sequence[str]) -> list[str]:
    """Which of the hashes have no row: copies of a process that died before it could say so."""
    known = set(KeptFile.objects.filter(sha256__in=hashes).values_list("sha256", flat=True))
    return [one for one in hashes if one not in known]


#: Asks a model, or makes words in another way; with the tokens it took, where they are known.
AskModel = Callable[[], Awaitable[str | NewDescription]]


class DescriptionCache:
    """Words for content: on record as :class:`agent.models.Description`, each question asked once.

    While a question is being asked, others who ask the same wait for its answer.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._asking: dict[DescriptionKey, asyncio.Task[str]] = {}

    async def get(self, message_pk: int, question: DescriptionKey, ask: AskModel) -> str:
        """The answer on record, or else that of ``ask``; it is linked to the message's copies of
        what was asked about.

        "" is no answer and not kept. Raises what ``ask`` raises, to all who wait. One
        who is cancelled leaves the others waiting.
        """
        asking = self._asking.get(question)
        if asking is None:
            asking = asyncio.create_task(self._find_or_ask(question, ask))
            self._asking[question] = asking
            asking.add_done_callback(lambda done: self._forget(question, done))
        text = await asyncio.shield(asking)
        if text:
            await self._record.submit(link_description, message_pk, question)
        return text

    async def close(self) -> None:
        """Stop what is being asked."""
        await end_tasks(self._asking.values())

    def _forget(self, question: DescriptionKey, asked: asyncio.Task[str]) -> None:
        del self._asking[question]
        if not asked.cancelled():
            asked.exception()  # marks it as seen: perhaps no task awaits it

    async def _find_or_ask(self, question: DescriptionKey, ask: AskModel) -> str:
        known = await self._record.submit_batched(find_descriptions, question)
        if known is not None:
            return known[1]
        answer = await ask()
        described = (
            answer if isinstance(answer, NewDescription) else NewDescription(question, answer)
        )
        if described.text:
            await self._record.submit(add_descriptions, described)
        return described.text


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
    while True:
        days = settings.MEDIA_KEEP_DAYS
        with log_errors(logger, "Old copies of media could not be deleted"):
            if days and (count := await prune_copies_by_age(record, files, days)):
                logger.info("%d copies of media were deleted, unused for %d days", count, days)
        await asyncio.sleep(EVERY_SECONDS)


async def run_copy_size_limit(record: Record, files: FileStore) -> None:
    """Delete the copies that were not used for longest whenever all together take more than
    MEDIA_KEEP_GIB.

    What is on the disk counts, so that it does not matter who wrote it, and which of it is on
    record.
    """
    size, written, measured_at = 0, files.written, -EVERY_SECONDS
    while True:
        limit = settings.MEDIA_KEEP_BYTES
        is_due = time.monotonic() - measured_at > EVERY_SECONDS
        with log_errors(logger, "The copies of media could not be kept within MEDIA_KEEP_GIB"):
            if limit and (is_due or size + files.written - written > limit):
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
    for start in range(0, len(going), PRUNE_BATCH):
        batch = going[start : start + PRUNE_BATCH]
        await record.submit(forget_hashes, batch)
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
    while forgotten := await record.submit(forget_copies, moment):
        await asyncio.to_thread(_remove, files, forgotten)
        count += len(forgotten)
    return count + await _forget_unknown(record, files, days)


async def _forget_unknown(record: Record, files: FileStore, days: int) -> int:
    """Delete copies that no row names: their process died before it could say so."""
    old, count = await asyncio.to_thread(lambda: sorted(set(files.older_than(days * DAY)))), 0
    for start in range(0, len(old), PRUNE_BATCH):
        unknown = await record.submit(unknown_copies, old[start : start + PRUNE_BATCH])
        await asyncio.to_thread(_remove, files, unknown)
        count += len(unknown)
    return count


def _remove(files: FileStore, hashes: list[str]) -> None:
    for sha256 in hashes:
        files.remove(sha256)
