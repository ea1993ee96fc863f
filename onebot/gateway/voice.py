"""Accounts that hear and cannot speak: sends fail, or nobody knows of them, one after the other."""

from collections.abc import Callable, Collection
from datetime import datetime

from django.utils import timezone

#: Sends in a row without one that arrived.
MOST_FAILURES = 5


class VoiceWatch:
    """Counts them by account, and tells since when it is so; None once a message has arrived."""

    def __init__(self, tell: Callable[[str, datetime | None], None]) -> None:
        self._tell = tell
        self.failures: dict[str, tuple[int, datetime]] = {}
        """How many, and when the first was."""
        self.voiceless: Collection[str] = ()
        """Accounts of which that is on record."""

    def failed(self, account: str) -> None:
        count, since = self.failures.get(account, (0, timezone.now()))
        self.failures[account] = count + 1, since
        if count + 1 >= MOST_FAILURES and account not in self.voiceless:
            self._tell(account, since)

    def arrived(self, account: str) -> None:
        count, _since = self.failures.pop(account, (0, None))
        if count >= MOST_FAILURES or account in self.voiceless:
            self._tell(account, None)
