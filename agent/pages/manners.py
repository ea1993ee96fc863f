"""What rows of manners say in words, and which persona answers in a chat: for lists, for the page
of a chat, and for those who compare two rows."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.manners import ChatManners, QuietSpan
from agent.domain.types import ChatAddress
from agent.models import Manners as MannersRow, ModelEndpoint, PersonaChoice
from agent.models.manners import LIMITS, SAID
from agent.models.scope import Scoped
from agent.record.settings.manners import said_values
from agent.record.settings.personas import find_answering_row
from tools.admin.record_pages import record_link
from tools.admin.settings_page import field_label
from tools.local_time import find_zone
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


def scope_words(row: Scoped) -> str:
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
    if name == "zone":
        return str(value) or find_zone().key
    if value is None:
        unbounded = gettext("as many as answers in one chat")
        return unbounded if name == "sends_per_minute" else gettext("as the persona says")
    if name == "endpoint":
        return str(ModelEndpoint.objects.filter(pk=value).first() or f"#{value}")
    if isinstance(value, int | float):
        number = f"{value:g}" if isinstance(value, float) else str(value)
        return f"{number} ({ZERO[name]})" if not value and name in ZERO else number
    if isinstance(value, tuple | frozenset):
        entries = [
            f"{one.start:%H:%M}-{one.end:%H:%M}" if isinstance(one, QuietSpan) else str(one)
            for one in (sorted(value) if isinstance(value, frozenset) else value)
        ]
        return shorten_list(entries) or gettext("none")
    choices = dict(getattr(MannersRow._meta.get_field(name), "flatchoices", ()))
    return str(choices.get(value) or shorten_text(str(value), SHOWN) or gettext("none"))


def shorten_list(entries: Sequence[str]) -> str:
    """The first of ``entries``, and how many there are beyond."""
    words = ", ".join(shorten_text(one, SHOWN) for one in entries[:ENTRIES])
    more = len(entries) - ENTRIES
    return f"{words} … (+{more})" if more > 0 else words


#: What the filter of accounts calls the rows of manners for every account.
EVERY_ACCOUNT = "-"


def describe_answering(chat: ChatAddress, request: HttpRequest) -> dict[str, Any]:
    """For the page of a chat: the persona that answers there."""
    row = find_answering_row(chat)
    may_see = request.user.has_perm("agent.view_persona")
    link = record_link("agent_persona", row.pk, row) if row and may_see else ""
    return {"persona": link or row or _("Default persona")}


def choose_url(fields: dict[str, str]) -> str:
    """Where the persona of the place that ``fields`` name, and nothing besides, is chosen."""
    whole = dict.fromkeys(("account", "chat_kind", "peer_id", "user_id"), "") | fields
    if known := PersonaChoice.objects.filter(**whole).first():
        return reverse("admin:agent_personachoice_change", args=(known.pk,))
    given = {name: value for name, value in fields.items() if value}
    return f"{reverse('admin:agent_personachoice_add')}?{urlencode(given)}"
