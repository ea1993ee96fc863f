"""Rows of manners that are changed by a switch or a command: that of one chat, and those for every
chat."""

from itertools import count

from django.contrib.auth.models import User
from django.db import transaction

from agent.domain.types import ChatAddress
from agent.models import Manners
from agent.models.scope import rank_row
from agent.record.settings.manners import is_for
from tools.live_rows import ConfigVersion, LiveKind
from tools.models.row_history import record_changes


def find_chat_manners(chat: ChatAddress) -> Manners | None:
    """The row that is switched on and lists exactly ``chat``, of its account; None without one.

    Of several the one that counts first. One that lists the chat for every account is none.
    """
    rows = Manners.objects.filter(enabled=True, account=chat.account, chats__contains=chat.peer_id)
    return min((row for row in rows if is_row_of_chat(row, chat)), key=rank_row, default=None)


def is_row_of_chat(row: Manners, chat: ChatAddress) -> bool:
    """Whether ``row`` is for ``chat`` and for nothing else."""
    return is_for(row, chat) and row.account == chat.account and row.chat_keys == (chat.key,)


def change_chat_manners(
    chat: ChatAddress, author: User | str | None = None, **fields: object
) -> Manners:
    """Set ``fields`` of the row of :func:`find_chat_manners`, which is made if there is none.

    On record as a change by ``author`` (words for an owner in a chat, None for the program) and
    obeyed from the next message on. Raises
    :class:`django.core.exceptions.ValidationError` for a value that a form would refuse; then
    nothing is changed.
    """
    with transaction.atomic():
        ConfigVersion.bump(LiveKind.MANNERS)  # who does the same waits here, and finds the row
        row = find_chat_manners(chat) or Manners.objects.create(
            name=find_free_name(f"{chat.key} ({chat.account})"),
            account=chat.account,
            chat_kind=chat.kind,
            chats=chat.key,
        )
        return change_row(row, author, **fields)


def find_account_manners(account: str) -> Manners | None:
    """The row that is switched on and for every chat of ``account``; of several the one that counts
    first."""
    rows = Manners.objects.filter(enabled=True, account=account, chat_kind="")
    return min((row for row in rows if not row.chat_keys), key=rank_row, default=None)


def find_everywhere() -> list[Manners]:
    """The rows that are switched on and for every chat of every account, the first to count
    first."""
    rows = Manners.objects.filter(enabled=True, account="", chat_kind="")
    return sorted(filter(is_for_everything, rows), key=rank_row)


def is_for_everything(row: Manners) -> bool:
    return not (row.account or row.chat_kind or row.chat_keys)


def silence_everything(name: str, author: User | str | None = None) -> Manners:
    """Silence every chat, by the first row for all of them; it is made, and called ``name``, if
    there is none."""
    with transaction.atomic():
        ConfigVersion.bump(LiveKind.MANNERS)
        rows = find_everywhere()
        row = rows[0] if rows else Manners.objects.create(name=find_free_name(name))
        return change_row(row, author, silenced=True, silenced_until=None)


def end_silence_everywhere(author: User | str | None = None) -> list[Manners]:
    """Take the silence out of all rows for every chat; the rows that had it. Chats and accounts
    that are silenced by rows of their own stay so."""
    with transaction.atomic():
        ConfigVersion.bump(LiveKind.MANNERS)
        rows = [row for row in find_everywhere() if row.silenced]
        return [change_row(row, author, silenced=False, silenced_until=None) for row in rows]


def change_row(row: Manners, author: User | str | None, **fields: object) -> Manners:
    """Store ``fields`` of ``row``, with its history."""
    with record_changes(author, row):
        for name, value in fields.items():
            setattr(row, name, value)
        row.full_clean()
        row.save(update_fields=[*fields, "updated_at"])
    return row


def find_free_name(wanted: str) -> str:
    """``wanted``, with a number where another row has that name."""
    wanted = wanted[:90]
    names = (wanted if number == 1 else f"{wanted} {number}" for number in count(1))
    return next(name for name in names if not Manners.objects.filter(name=name).exists())
