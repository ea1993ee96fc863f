"""From what a client names to our own copy of it."""

import asyncio
import base64
import binascii
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.types import ChatAddress, MediaRef, MediaSource, MediaUnavailable
from agent.media import media_store as store
from agent.media.file_store import FileStore, StoredFile
from agent.record.record import Record
from agent.record.waiting.recovery import PendingMessage
from tools.fetch.fetcher import Fetcher
from tools.fetch.request import FetchError, FetchRequest, TooLarge
from tools.processes.disk import run_on_disk_thread

DAY = timedelta(days=1)
#: People whose day is remembered; that of others is read from the record again.
REMEMBERED = 10_000

DAY_OVER = gettext_noop("more was fetched for this person within a day than the server allows")


class DailyQuota:
    """The bytes that one person had fetched within the last 24 hours, of ``most``."""

    def __init__(self, most: int, before: Iterable[tuple[datetime, int]] = ()) -> None:
        self.most = most
        self._fetched = deque(before)
        self._promised = 0
        self._changed = asyncio.Condition()

    @property
    def left(self) -> int:
        """What may still be fetched, and is not promised to a download."""
        since = timezone.now() - DAY
        while self._fetched and self._fetched[0][0] < since:
            self._fetched.popleft()
        return self.most - sum(size for _, size in self._fetched) - self._promised

    def count(self, size: int) -> None:
        """Note that ``size`` bytes were fetched. Raises :class:`MediaUnavailable` where there are
        not so many left."""
        if size > self.left:
            raise MediaUnavailable(DAY_OVER)
        self.note(size)

    def note(self, size: int) -> None:
        """Note that ``size`` bytes were fetched, as they were promised."""
        self._fetched.append((timezone.now(), size))

    @contextlib.asynccontextmanager
    async def promise(self, wanted: int) -> AsyncIterator[int]:
        """So many bytes, or what is left, for a download that ends with the block.

        Where others of the same person may leave some over, they are waited for. Raises
        :class:`MediaUnavailable`.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self.left >= wanted or not self._promised)
            granted = min(wanted, self.left)
            if granted <= 0:
                raise MediaUnavailable(DAY_OVER)
            self._promised += granted
        try:
            yield granted
        finally:
            self._promised -= granted
            async with self._changed:
                self._changed.notify_all()


class DailyQuotas:
    """The daily quotas of all senders but the owners, as MEDIA_PERSON_MIB_PER_DAY says."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._known: OrderedDict[tuple[str, str], DailyQuota] = OrderedDict()

    async def find_quota(self, pending: PendingMessage) -> DailyQuota | None:
        """The quota of the sender; None for a sender without a limit."""
        message = pending.message
        most = settings.MEDIA_PERSON_MIB_PER_DAY * 2**20
        if not most or message.sender_id in pending.account.owners:
            return None
        person = (message.chat.platform, message.sender_id)
        if person not in self._known:
            before = await self._record.submit(
                store.load_fetched_bytes, *person, timezone.now() - DAY
            )
            self._known.setdefault(person, DailyQuota(most, before))
        self._known[person].most = most
        self._known.move_to_end(person)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return self._known[person]


#: Time for one download, in seconds.
SECONDS = 30.0
#: The smallest part of a message's allowance that one download is tried with, in bytes.
SMALLEST_SHARE = 2**16
#: Characters of Base64 that are decoded at a time; a multiple of four.
SLICE = 2**20

TypeFilter = Callable[[str], bool]

NO_ADDRESS = gettext_noop("the client named no address")
TOO_MUCH = gettext_noop("the message holds more than may be fetched")
WRONG_KIND = gettext_noop("the content is not what the message says it is")
NOT_BASE64 = gettext_noop("the content is not Base64")
GONE = gettext_noop("the copy that was made when it came is not there")
DISK = gettext_noop("the copy could not be written to the disk")


class DownloadAllowance:
    """The bytes that the media of one message may have together, ``sharers`` of them.

    Each is tried with an equal share first. One that is larger waits for the others that
    are, and then may take what is left. So the bytes in memory are never more than
    twice ``total``, whatever servers send, and a message of one file may use it all.
    """

    def __init__(self, total: int, sharers: int = 1, day: DailyQuota | None = None) -> None:
        self.left = total
        self._share = max(total // max(sharers, 1), SMALLEST_SHARE)
        self._alone = asyncio.Lock()
        self._day = day

    async def spend(self, fetch: Callable[[int], Awaitable[bytes]]) -> bytes:
        """What ``fetch`` returns for a number of bytes it may have; :class:`TooLarge` if it cannot
        be had within them."""
        try:
            return self._taken(await self._of_the_day(fetch, min(self._share, self.left)))
        except TooLarge:
            if self.left <= self._share:
                raise
        async with self._alone:
            return self._taken(await self._of_the_day(fetch, self.left))

    async def _of_the_day(self, fetch: Callable[[int], Awaitable[bytes]], limit: int) -> bytes:
        """What ``fetch`` returns for ``limit`` bytes, or for what the person who asks has left of
        the day."""
        if self._day is None:
            return await fetch(limit)
        async with self._day.promise(limit) as granted:
            try:
                content = await fetch(granted)
            except TooLarge as error:
                if granted < limit:
                    raise MediaUnavailable(DAY_OVER) from error
                raise
            self._day.note(len(content))
        return content

    def _taken(self, content: bytes) -> bytes:
        self.count(len(content))
        return content

    def count_kept(self, size: int) -> None:
        """Take ``size`` bytes that are on disk already. Raises :class:`TooLarge`, and
        :class:`MediaUnavailable`."""
        self.count(size)
        if self._day is not None:
            self._day.count(size)

    def count(self, size: int) -> None:
        """Take ``size`` bytes. Raises :class:`TooLarge` where there are not so many."""
        if size > self.left:
            raise TooLarge(self.left)
        self.left -= size


class MediaDownloader:
    """Fetches what messages hold, through the project's one way out, and keeps it.

    ``source`` is asked again for what a link no longer leads to.
    """

    def __init__(self, fetcher: Fetcher, files: FileStore, source: MediaSource) -> None:
        self.files = files
        self.source = source
        self._fetcher = fetcher

    async def get(
        self,
        chat: ChatAddress,
        ref: MediaRef,
        allowance: DownloadAllowance,
        accepts: TypeFilter = bool,
    ) -> StoredFile:
        """Our own copy of what ``ref`` names, in a type that ``accepts`` says yes to; any that is
        known by default.

        Raises :class:`MediaUnavailable` with the reason for the last way that was tried.
        After cancellation a copy may be on disk that no row names.
        """
        reason, tried = MediaUnavailable(NO_ADDRESS), set[str]()
        async for candidate in self._candidates(chat, ref):
            if candidate.url in tried or not (candidate.url or candidate.data or candidate.sha256):
                continue
            tried.add(candidate.url)
            try:
                return await self._kept(candidate, allowance, accepts)
            except TooLarge as error:
                raise MediaUnavailable(TOO_MUCH) from error
            except FetchError as error:
                reason = MediaUnavailable(str(error))
            except MediaUnavailable as error:
                reason = error
        raise reason

    async def _candidates(self, chat: ChatAddress, ref: MediaRef) -> AsyncIterator[MediaRef]:
        yield ref
        async for renewed in self.source.renew_address(chat, ref):
            yield renewed

    async def _kept(
        self, ref: MediaRef, allowance: DownloadAllowance, accepts: TypeFilter
    ) -> StoredFile:
        if ref.sha256:
            return await self._arrived(ref, allowance, accepts)
        if ref.data:
            content = await allowance.spend(
                lambda limit: run_on_disk_thread(partial(decode_base64, ref.data, limit))
            )
        else:
            content = await allowance.spend(lambda limit: self._downloaded(ref.url, limit))
        try:
            kept = await run_on_disk_thread(partial(self.files.put, content))
        except OSError as error:
            raise MediaUnavailable(DISK) from error
        return _accepted(kept, accepts)

    async def _arrived(
        self, ref: MediaRef, allowance: DownloadAllowance, accepts: TypeFilter
    ) -> StoredFile:
        """What was kept when it came."""
        kept = await run_on_disk_thread(partial(self.files.find, ref.sha256))
        if kept is None:
            raise MediaUnavailable(GONE)
        allowance.count_kept(kept.size)
        return _accepted(kept, accepts)

    async def _downloaded(self, url: str, limit: int) -> bytes:
        return (
            await self._fetcher.download(FetchRequest(url, max_bytes=limit, seconds=SECONDS))
        ).body


def _accepted(kept: StoredFile, accepts: TypeFilter) -> StoredFile:
    if not accepts(kept.mime):
        raise MediaUnavailable(WRONG_KIND)
    return kept


def decode_base64(data: str, limit: int) -> bytes:
    """The bytes that Base64 ``data`` stands for. Raises :class:`TooLarge` above ``limit`` and
    :class:`MediaUnavailable`."""
    if len(data) * 3 // 4 > limit + 2:
        raise TooLarge(limit)
    data = "".join(data.split())
    try:  # in slices, between which other threads can run
        return b"".join(
            base64.b64decode(data[at : at + SLICE], validate=True)
            for at in range(0, len(data), SLICE)
        )
    except binascii.Error as error:
        raise MediaUnavailable(NOT_BASE64) from error
