"""Silences of chats, and chats in which only one person is answered: begun and ended by a switch or
a command, for some time or for good.

When one ends is judged with each message (:meth:`agent.domain.manners.ChatManners.find_silence`,
``find_only``); here rows whose time is over are only tidied up.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from agent.domain.types import ChatAddress
from agent.models import Manners
from agent.record.settings.chat_manners import change_chat_manners
from tools.live_rows import ConfigVersion, LiveKind
from tools.models.row_history import record_changes

#: Who ends them, as the history says it.
CLOCK = "the time was over"
SPOKEN: dict[str, Any] = {"silenced": False, "silenced_until": None}
EVERYBODY: dict[str, Any] = {"only_person": "", "only_until": None}


def silence_chat(chat: ChatAddress, end: datetime | None, author: User | str) -> None:
    """Silence ``chat`` until ``end``; None: until somebody ends it."""
    change_chat_manners(chat, author, silenced=True, silenced_until=end)


def end_silence(chat: ChatAddress, author: User | str) -> None:
    """Take the silence out of the row for ``chat`` alone."""
    change_chat_manners(chat, author, **SPOKEN)


def answer_only(chat: ChatAddress, person: str, end: datetime, author: User | str) -> None:
    """Answer nobody but ``person`` in ``chat`` until ``end``."""
    change_chat_manners(chat, author, only_person=person, only_until=end)


def answer_everybody(chat: ChatAddress, author: User | str) -> None:
    """Answer others in ``chat`` again."""
    change_chat_manners(chat, author, **EVERYBODY)


def end_silences(asked: Sequence[None]) -> list[int]:
    """Take what is over out of its rows, on record; of how many."""
    now = timezone.now()
    over = Manners.objects.filter(
        Q(silenced=True, silenced_until__lte=now) | Q(only_until__lte=now)
    )
    if not over.exists():
        return [0] * len(asked)
    # First, as others who change such a row: nobody waits for each other.
    ConfigVersion.bump(LiveKind.MANNERS)
    rows = list(over.select_for_update(skip_locked=True))
    for row in rows:
        is_silence_over = row.silenced_until is not None and row.silenced_until <= now
        fields = SPOKEN if row.silenced and is_silence_over else {}
        if row.only_until is not None and row.only_until <= now:
            fields = fields | EVERYBODY
        with record_changes(CLOCK, row):
            for name, value in fields.items():
                setattr(row, name, value)
            row.save(update_fields=[*fields, "updated_at"])
    return [len(rows)] * len(asked)
