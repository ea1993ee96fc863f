"""Silences of chats that end by themselves: when stands with the change that began them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agent.domain.types import ChatAddress
from agent.models import Manners
from agent.record.chat_manners import change_chat_manners, find_chat_manners
from tools.admin.row_history import find_changes, record_changes
from tools.models.change import SAID_UNTIL

#: Who ends them, as the history says it.
CLOCK = "the time was over"
#: Changes of a row among which the one that silenced it is looked for.
LOOKED_AT = 50


def silence_chat(chat: ChatAddress, end: datetime | None, author: str) -> None:
    """Silence ``chat`` until ``end``; None: until somebody ends it."""
    known = find_chat_manners(chat)
    if known is not None and known.silenced:  # so that this silence is a change of its own
        change_chat_manners(chat, author, silenced=False)
    row = change_chat_manners(chat, author, silenced=True)
    change = find_changes(row).first()
    if change is not None and end is not None:
        change.after[SAID_UNTIL] = end.isoformat()
        change.save(update_fields=["after"])


def end_silences(asked: Sequence[None]) -> list[int]:
    """End the silences whose time is over; how many."""
    now, ended = timezone.now(), 0
    for row in Manners.objects.filter(silenced=True, enabled=True).exclude(chats=""):
        if (end := _find_end(row)) is not None and end <= now:
            with record_changes(CLOCK, row):
                row.silenced = False
                row.save(update_fields=["silenced", "updated_at"])
            ended += 1
    return [ended] * len(asked)


def _find_end(row: Manners) -> datetime | None:
    changes = find_changes(row).values_list("after", flat=True)[:LOOKED_AT]
    newest: dict[str, Any] = next((after for after in changes if "silenced" in after), {})
    return parse_datetime(newest.get(SAID_UNTIL, ""))
