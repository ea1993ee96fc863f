"""The media of a message: fetched when it arrives, read when it is answered."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.types import (
    ChatAddress,
    IncomingMessage,
    MediaKind,
    MediaRef,
    MediaSource,
    MediaUnavailable,
)
from agent.media import heard_words, media_store as store
from agent.media.downloads import DailyQuotas, DownloadAllowance
from agent.media.file_store import FileStore, StoredFile
from agent.media.heard_words import HeardWords
from agent.record.record import Record
from agent.record.waiting.recovery import PendingMessage
from tools.error_boundary import LogLimit, log_errors
from tools.processes.disk import run_on_disk_thread
from tools.tasks import end_tasks
from tools.text.fences import clean_name

#: Time for a client to give all names of a message, in seconds, and how many are asked for.
NAME_SECONDS, MOST_ASKED = 1.0, 5


def find_unnamed(message: IncomingMessage) -> list[str]:
    """The numbers of the people whom the header of ``message`` mentions without a name."""
    mentions = (message.header or {}).get("mentions", ())
    return [one["user_id"] for one in mentions if not one.get("name")][:MOST_ASKED]


async def ask_names(
    source: MediaSource, chat: ChatAddress, people: Sequence[str]
) -> dict[str, str]:
    """What ``people`` are called in a group, as far as the client says it in time; "" for those
    whom it does not know."""
    names: dict[str, str] = {}

    async def ask(user_id: str) -> None:
        names[user_id] = clean_name(await source.fetch_member_name(chat, user_id))

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(NAME_SECONDS):
            await asyncio.gather(*map(ask, people))
    return names


async def name_mentions(source: MediaSource, message: IncomingMessage) -> dict[str, object] | None:
    """The header of ``message`` with the names that the client gives in time; None where it gives
    none."""
    names = await ask_names(source, message.chat, find_unnamed(message))
    if not any(names.values()) or message.header is None:
        return None
    mentions = message.header["mentions"]
    named = [one | {"name": names.get(one["user_id"]) or one["name"]} for one in mentions]
    return message.header | {"mentions": named}


logger = logging.getLogger(__name__)
LogLimit(logger)

#: Media that are read for one message; the rest keep their placeholders.
MOST = 20
#: Messages whose media are fetched at the same time: what bounds the memory of a process.
AT_ONCE = 8

TOO_LATE = gettext_noop("it could not be fetched in time")
TOO_MANY = gettext_noop("the message holds too many pictures, voice messages and files")
LOW_DISK = gettext_noop("the disk of the server is nearly full")
FAILED = gettext_noop("an error of this program; see the log")


@dataclass(frozen=True, slots=True)
class FetchedMedia:
    """The outcome of one medium: our copy of it, or the reason why there is none."""

    ref: MediaRef
    kept: StoredFile | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MediaText:
    """The text that a reader made from the media of one message."""

    text: str = ""
    """What follows the user's words, beginning with a space; "" for nothing."""
    notes: tuple[str, ...] = ()
    """For the run's record: what was left out, and why."""
    pictures: tuple[str, ...] = ()
    """Content hashes of the pictures that the chat model is shown itself."""
    context: str = ""
    """The fenced words of what it quotes and forwards; "" for nothing."""
    header: dict[str, object] | None = None
    """Its header with the names of people whom the record does not know; None where it stays."""
    order: str = ""
    """What a rule has the model do, in the place of the words; "" where these stay."""


@dataclass(frozen=True, slots=True)
class FetchedMessage:
    """What was fetched for one message: its media, the fenced words of what it quotes and forwards,
    and its header where the client named somebody in it."""

    media: list[FetchedMedia] = field(default_factory=list)
    context: str = ""
    header: dict[str, object] | None = None


def note_missing_media(note: str, found: Sequence[FetchedMedia]) -> list[str]:
    """``note`` and the reasons, when something of ``found`` could not be had; else nothing."""
    reasons = [one.reason for one in found if one.kept is None]
    return [note, *filter(None, reasons)] if reasons else []


class MediaReader(Protocol):
    """One way to understand media: seeing, hearing, reading files."""

    kinds: frozenset[MediaKind]

    def wants(self, pending: PendingMessage) -> bool:
        """Whether media of this message are to be fetched at all. Pure."""
        ...

    async def fetch(
        self, message: IncomingMessage, ref: MediaRef, allowance: DownloadAllowance
    ) -> StoredFile:
        """Our copy of ``ref``, ready to be read. Raises :class:`MediaUnavailable`."""
        ...

    async def read(self, pending: PendingMessage, found: Sequence[FetchedMedia]) -> MediaText:
        """Make words of what was found, which may be nothing. Errors of models are notes, not
        raised."""
        ...


class ClosableReader(Protocol):
    async def close(self) -> None: ...


PrefetchTask = asyncio.Task[FetchedMessage]


class MediaPipeline:
    """All readers, in the order in which what they read follows the user's words."""

    def __init__(
        self,
        record: Record,
        source: MediaSource,
        files: FileStore,
        readers: Sequence[MediaReader],
        owned: Sequence[ClosableReader] = (),
        days: DailyQuotas | None = None,
    ) -> None:
        self._record = record
        self._source = source
        self._words = HeardWords(record, source)
        self._files = files
        self._readers = readers
        self._owned = owned
        self._days = days
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[PrefetchTask] = set()

    def prefetch(self, pending: PendingMessage, *, resumed: bool = False) -> PrefetchTask | None:
        """Begin to fetch the media of a message; None when it has none. Returns at once."""
        message = pending.message
        has_forward = self._source.has_forward(message.segments)
        has_more = message.media or message.quoted_id or has_forward
        if not (has_more or find_unnamed(message)):
            return None
        work = self._fetch_all(pending, has_forward=has_forward, resumed=resumed)
        task = asyncio.get_running_loop().create_task(work, name=f"media of {pending.pk}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def describe(self, pending: PendingMessage, prefetch: PrefetchTask | None) -> MediaText:
        """Everything that was read in the media of a message, and the words of what it quotes and
        forwards, on record for later runs.

        ``prefetch`` is what :meth:`prefetch` began; None for a message without media. Never
        raises for what a client, a server or a model does.
        """
        if prefetch is None:
            return MediaText()
        fetched = FetchedMessage()
        with log_errors(logger, "The media of message %s could not be looked for", pending.pk):
            fetched = await prefetch
        readings = await asyncio.gather(
            *(self._read(reader, pending, fetched.media) for reader in self._readers)
        )
        text, context = "".join(reading.text for reading in readings), fetched.context
        header = fetched.header
        if text or header or context != pending.message.context_text:
            message = pending.message
            chat, quoted_id = message.chat, message.quoted_id
            heard = store.HeardText(
                pending.pk, pending.session_pk, chat, text, context, quoted_id, header
            )
            kept = await self._record.submit(store.save_heard_texts, heard)
            text, context = kept.media_text, kept.context_text
        return MediaText(
            text,
            tuple(note for reading in readings for note in reading.notes),
            tuple(picture for reading in readings for picture in reading.pictures),
            context,
            header,
        )

    async def describe_resumed(self, pending: PendingMessage) -> MediaText:
        """The same of a message that is taken up from the record: what an earlier process fetched
        or described is not fetched or described again."""
        known = MediaText(pending.message.media_text, context=pending.message.context_text)
        if known.text and pending.persona.vision_mode == "describe":
            return known
        pending = replace(pending, message=self._source.restore_media(pending.message))
        prefetch = self.prefetch(pending, resumed=True)
        return await self.describe(pending, prefetch) if prefetch else known

    async def close(self) -> None:
        """Stop what is being fetched, and end what the readers work with."""
        await end_tasks(self._tasks)
        for part in self._owned:
            await part.close()

    async def _read(
        self, reader: MediaReader, pending: PendingMessage, found: Sequence[FetchedMedia]
    ) -> MediaText:
        with log_errors(logger, "The media of message %s could not be read", pending.pk):
            return await reader.read(
                pending, [one for one in found if one.ref.kind in reader.kinds]
            )
        return MediaText(notes=(FAILED,))

    async def _fetch_all(
        self, pending: PendingMessage, *, has_forward: bool, resumed: bool
    ) -> FetchedMessage:
        """Fetch what the readers need, and the words that are not on record yet, in parallel."""
        media = self._fetch_media(pending, has_forward=has_forward, resumed=resumed)
        names = name_mentions(self._source, pending.message)
        known = pending.message.context_text
        if known or not (pending.message.quoted_id or has_forward):
            found, header = await asyncio.gather(media, names)
            return FetchedMessage(found, known, header)
        return FetchedMessage(*await asyncio.gather(media, self._words.find(pending), names))

    async def _fetch_media(
        self, pending: PendingMessage, *, has_forward: bool, resumed: bool
    ) -> list[FetchedMedia]:
        """Fetch what the readers need, in parallel, and record the outcome."""
        if resumed and (found := await self._fetched_before(pending)):
            return found
        readers = [reader for reader in self._readers if reader.wants(pending)]
        if not readers:
            return []
        deadline = asyncio.get_running_loop().time() + settings.MEDIA_FETCH_SECONDS
        refs = list(pending.message.media)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                refs += await self._find_quoted_media(pending)
                if has_forward:
                    refs += await self._source.fetch_forwarded_media(
                        pending.message.chat, pending.message.segments
                    )
        wanted = [(reader, ref) for ref in refs for reader in readers if ref.kind in reader.kinds]
        found = await self._fetch_wanted(wanted[:MOST], pending, deadline)
        found += [FetchedMedia(ref, reason=TOO_MANY) for _, ref in wanted[MOST : 2 * MOST]]
        if found:
            rows = [
                store.MediaRow(one.ref, kept.sha256, kept.mime, kept.size)
                if (kept := one.kept)
                else store.MediaRow(one.ref, reason=one.reason)
                for one in found
            ]
            with log_errors(
                logger, "What became of the media of message %s could not be recorded", pending.pk
            ):
                await self._record.submit_batched(store.record_media, (pending.pk, rows))
        return found

    async def _fetch_wanted(
        self,
        wanted: Sequence[tuple[MediaReader, MediaRef]],
        pending: PendingMessage,
        deadline: float,
    ) -> list[FetchedMedia]:
        if not wanted:
            return []
        if not await run_on_disk_thread(self._files.has_room):
            logger.warning(
                "Less than MEDIA_FREE_GIB is free on the disk of the data folder: no media are "
                "fetched"
            )
            return [FetchedMedia(ref, reason=LOW_DISK) for _, ref in wanted]
        day = await self._days.find_quota(pending) if self._days else None
        allowance = DownloadAllowance(settings.MEDIA_FETCH_MIB * 2**20, len(wanted), day)
        async with self._turns:
            return await asyncio.gather(
                *(self._fetch(*one, pending.message, allowance, deadline) for one in wanted)
            )

    async def _find_quoted_media(self, pending: PendingMessage) -> list[MediaRef]:
        """The media of the quoted message: from the record, or else from the client."""
        message = pending.message
        if not message.quoted_id:
            return []
        segments = await self._record.submit(
            store.load_segments, pending.session_pk, message.quoted_id
        )
        if segments is None:
            with contextlib.suppress(TimeoutError):
                # The words of the quote are in the same answer, and are waited for no longer.
                async with asyncio.timeout(heard_words.QUOTE_SECONDS):
                    return await self._source.fetch_quoted_media(message.chat, message.quoted_id)
            return []
        refs = self._source.parse_refs(segments, message.quoted_id, "quoted")
        if self._source.has_forward(segments):
            refs += await self._source.fetch_forwarded_media(message.chat, segments)
        return refs

    async def _fetch(
        self,
        reader: MediaReader,
        ref: MediaRef,
        message: IncomingMessage,
        allowance: DownloadAllowance,
        deadline: float,
    ) -> FetchedMedia:
        with log_errors(logger, "A medium of %s could not be fetched", message.chat.address):
            try:
                async with asyncio.timeout_at(deadline):
                    return FetchedMedia(ref, await reader.fetch(message, ref, allowance))
            except TimeoutError:
                return FetchedMedia(ref, reason=TOO_LATE)
            except MediaUnavailable as error:
                return FetchedMedia(ref, reason=str(error))
        return FetchedMedia(ref, reason=FAILED)

    async def _fetched_before(self, pending: PendingMessage) -> list[FetchedMedia]:
        """What an earlier process fetched, as far as the copies are still there; links expire in
        the meantime."""
        rows = await self._record.submit_batched(store.load_media, pending.pk)
        kept = await asyncio.to_thread(
            lambda: [row.sha256 and self._files.find(row.sha256) for row in rows]
        )
        return [
            FetchedMedia(row.ref, one or None, row.reason)
            for row, one in zip(rows, kept, strict=True)
        ]
