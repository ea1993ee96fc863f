"""What may be fetched for one person within a day."""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.domain.media_refs import MediaUnavailable
from agent.media import media_store as store
from agent.record.record import Record
from agent.record.waiting.recovery import PendingMessage

DAY = timedelta(days=1)
#: People whose day is remembered; that of others is read from the record again.
REMEMBERED = 10_000

DAY_OVER = gettext_noop("more was fetched for this person within a day than the server allows")


class DailyQuota:
    """The bytes that one person had fetched within the last 24 hours, of ``most``."""

    def __init__(self, most: int, before: Iterable[tuple[datetime, int]] = ()) -> None:
        self._most = most
        self._fetched = deque(before)
        self._promised = 0
        self._changed = asyncio.Condition()

    @property
    def left(self) -> int:
        """What may still be fetched, and is not promised to a download."""
        since = timezone.now() - DAY
        while self._fetched and self._fetched[0][0] < since:
            self._fetched.popleft()
        return self._most - sum(size for _, size in self._fetched) - self._promised

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
    """The daily quotas of all senders but the owners; ``most`` bytes each, 0 for no limit."""

    def __init__(self, record: Record, most: int) -> None:
        self._record = record
        self._most = most
        self._known: OrderedDict[tuple[str, str], DailyQuota] = OrderedDict()

    async def find_quota(self, pending: PendingMessage) -> DailyQuota | None:
        """The quota of the sender; None for a sender without a limit."""
        message = pending.message
        if not self._most or message.sender_id in pending.account.owners:
            return None
        person = (message.chat.platform, message.sender_id)
        if person not in self._known:
            before = await self._record.submit(
                store.load_fetched_bytes, *person, timezone.now() - DAY
            )
            self._known.setdefault(person, DailyQuota(self._most, before))
        self._known.move_to_end(person)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return self._known[person]
