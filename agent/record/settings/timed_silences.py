"""Silences of chats: begun and ended by a switch or a command, for some time or for good.

When one ends is judged with each message
(:meth:`agent.domain.manners.ChatManners.find_silence`); here rows whose time is over are only
tidied up.
"""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.models import User
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import Manners
from agent.record.settings.chat_manners import change_chat_manners
from tools.live_rows import ConfigVersion, LiveKind
from tools.models.row_history import record_changes

#: Who ends them, as the history says it.
CLOCK = "the time was over"


def silence_chat(chat: ChatAddress, end: datetime | None, author: User | str) -> None:
    """Silence ``chat`` until ``end``; None: until somebody ends it."""
    change_chat_manners(chat, author, silenced=True, silenced_until=end)


def end_silence(chat: ChatAddress, author: User | str) -> None:
    """Take the silence out of the row for ``chat`` alone."""
    change_chat_manners(chat, author, silenced=False, silenced_until=None)


def end_silences(asked: Sequence[None]) -> list[int]:
    """Untick the silences whose time is over, on record; how many."""
    over = Manners.objects.filter(silenced=True, silenced_until__lte=timezone.now())
    if not over.exists():
        return [0] * len(asked)
    # First, as others who change such a row: nobody waits for each other.
    ConfigVersion.bump(LiveKind.MANNERS)
    rows = list(over.select_for_update(skip_locked=True))
    for row in rows:
        with record_changes(CLOCK, row):
            row.silenced, row.silenced_until = False, None
            row.save(update_fields=["silenced", "silenced_until", "updated_at"])
    return [len(rows)] * len(asked)
