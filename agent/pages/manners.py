"""What rows of manners say, in words: for lists, for the page of a chat, and for those who compare
two rows."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.utils import formats, timezone
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.manners import ChatManners, QuietSpan
from agent.models import Manners as MannersRow, ModelEndpoint
from agent.models.manners import LIMITS, SAID
from agent.record.settings.manners import said_values
from tools.admin.changes import field_label
from tools.text.readable import shorten_text

#: Characters of one value that a list shows, and entries of a list in it.
SHOWN, ENTRIES = 60, 3
#: What a zero means, by field.
ZERO = {
    "wake_chance": _("nobody by chance"),
    "ambient_messages": _("none"),
    "ambient_chars": _("none"),
    "ambient_minutes": _("none"),
    "merge_seconds": _("each by itself"),
    "forward_above": _("never"),
    **dict.fromkeys((*LIMITS, "sends_per_minute"), _("no limit")),
}


class ShownField(NamedTuple):
    """One field as a page shows it. ``row`` is the row that says it, None for the program."""

    field: str
    label: str
    words: str
    row: MannersRow | None = None


def scope_words(row: MannersRow) -> str:
    """Where ``row`` counts."""
    kind, keys = row.get_chat_kind_display(), row.chat_keys
    where = shorten_list(keys) if keys else kind or gettext("all chats")
    if row.account:
        return gettext("%(chats)s of account %(account)s") % {
            "chats": where,
            "account": row.account,
        }
    if keys or kind:
        return gettext("%(chats)s of every account") % {"chats": where}
    return gettext("everywhere")


def silenced_words(end: datetime) -> str:
    """That a row silences its chats, until ``end``."""
    at = formats.date_format(timezone.localtime(end), "Y-m-d H:i")
    return gettext("silenced until %(time)s") % {"time": at}


def list_said(row: MannersRow) -> Iterator[ShownField]:
    """What ``row`` says, field by field."""
    for name, value in said_values(row):
        words = str(row.endpoint) if name == "endpoint" else value_words(name, value)
        yield ShownField(name, field_label(MannersRow, name), words, row)


def list_counting(manners: ChatManners, rows: list[MannersRow]) -> Iterator[ShownField]:
    """Everything that counts in a chat, each with the row of ``rows`` that says it."""
    by_name = {row.name: row for row in rows}
    for name in SAID:
        words = value_words(name, getattr(manners, name))
        yield ShownField(
            name, field_label(MannersRow, name), words, by_name.get(manners.said_by.get(name, ""))
        )


def value_words(name: str, value: Any) -> str:
    """A value of the field ``name`` as rows or :class:`ChatManners` have it."""
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if value is None:
        return _unsaid(name)
    if name == "endpoint":
        return str(ModelEndpoint.objects.filter(pk=value).first() or f"#{value}")
    if isinstance(value, int | float):
        number = f"{value:g}" if isinstance(value, float) else str(value)
        return f"{number} ({ZERO[name]})" if not value and name in ZERO else number
    if isinstance(value, tuple | frozenset):
        ordered = sorted(value) if isinstance(value, frozenset) else value
        return shorten_list([_entry(one) for one in ordered]) or gettext("none")
    choices = dict(getattr(MannersRow._meta.get_field(name), "flatchoices", ()))
    return str(choices.get(value) or shorten_text(str(value), SHOWN) or gettext("none"))


def shorten_list(entries: Sequence[str]) -> str:
    """The first of ``entries``, and how many there are beyond."""
    words = ", ".join(shorten_text(one, SHOWN) for one in entries[:ENTRIES])
    more = len(entries) - ENTRIES
    return f"{words} … (+{more})" if more > 0 else words


def _entry(value: Any) -> str:
    if isinstance(value, QuietSpan):
        return f"{value.start:%H:%M}-{value.end:%H:%M}"
    return str(value)


def _unsaid(name: str) -> str:
    if name == "sends_per_minute":
        return gettext("as many as answers in one chat")
    return gettext("as the persona says")
