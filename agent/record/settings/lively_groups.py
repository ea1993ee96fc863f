"""One row of manners for all groups, with what makes the bot good company there."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from agent.domain.manners import MarkdownStyle
from agent.domain.states import SessionKind
from agent.models import Manners
from agent.record.settings.chat_manners import change_row, find_free_name
from tools.live_rows import ConfigVersion, LiveKind

#: What the row says.
LIVELY: dict[str, Any] = {
    "ambient_messages": 20,
    "merge_seconds": 2.0,
    "mention": False,
    "quote": True,
    "part_chars": 600,
    "forward_above": 1_500,
    "markdown": MarkdownStyle.PICTURE.value,
    "sends_per_minute": 15,
    "reaction": "424",
}


def find_lively_row() -> Manners | None:
    """The row that is switched on, for all groups, and shows the model the words of others and has
    it wait for further ones; None without."""
    rows = _group_rows().filter(enabled=True, ambient_messages__gt=0, merge_seconds__gt=0)
    return next((row for row in rows if not row.chat_keys), None)


def make_groups_lively(name: str, author: User | None) -> Manners:
    """Switch such a row on, or make one, called ``name``; the row."""
    with transaction.atomic():
        ConfigVersion.bump(LiveKind.MANNERS)  # who does the same waits here, and finds the row
        if found := find_lively_row():
            return found
        before = _group_rows().filter(enabled=False, **LIVELY)
        if row := next((row for row in before if not row.chat_keys), None):
            return change_row(row, author, enabled=True)
        row = Manners.objects.create(name=find_free_name(name), chat_kind=SessionKind.GROUP)
        return change_row(row, author, **LIVELY)


def take_back_lively(author: User | None) -> Manners | None:
    """Switch the row off, which keeps what it says; None where there is none."""
    with transaction.atomic():
        ConfigVersion.bump(LiveKind.MANNERS)
        row = find_lively_row()
        return change_row(row, author, enabled=False) if row else None


def _group_rows() -> QuerySet[Manners]:
    rows: QuerySet[Manners] = Manners.objects.filter(account="", chat_kind=SessionKind.GROUP)
    return rows.order_by("pk")
