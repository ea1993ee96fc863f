"""What the row of a chat keeps from one run for the next: its state, whether a continuation is
active, and the deferred tools that were found in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from agent.domain.chat_state import StateChange, ToolDiscovery
from agent.domain.manners import MOST_PART_CHARS, ChatManners
from agent.domain.types import ChatAddress
from agent.models import ChatSession
from agent.record.ground import statements

MOST_KEPT = 100
"""Tools that a chat keeps; beyond that, what was found first has to be found again."""


@dataclass(frozen=True, slots=True)
class ChatGateSetting:
    """``is_on``: the chat's own decision on the timing gate, None where the bot's row decides."""

    is_on: bool | None = None
    is_continuing: bool = False
    """Whether the planner was at work when the last run ended: then the next one needs no gate."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """All that the row keeps, in one query."""

    state: dict[str, Any] = field(default_factory=dict)
    gate: ChatGateSetting = field(default_factory=ChatGateSetting)
    discovered: tuple[str, ...] = ()
    context_after: int | None = None
    """The key of the message after which the context is fresh; None where it never was reset."""
    taken_over_by: str = ""
    """The operator who answers there instead of the bot."""
    has_notes: bool | None = None
    """Whether there is any note to recall, in any chat; None where that was not read."""


@dataclass(frozen=True, slots=True)
class OpenedChat:
    """The row of a chat that something is to be sent to. ``silence``: why nothing may be said
    there, in words for a model; "" where it may. The rest is that of its manners."""

    session_pk: int
    silence: str = ""
    sends_per_minute: int | None = None
    part_chars: int = MOST_PART_CHARS


def open_chats(chat: ChatAddress, manners: ChatManners) -> OpenedChat:
    """The row of a chat, made where nothing was said there yet; with the manners of the chat."""
    now = timezone.now()
    row, _ = ChatSession.objects.get_or_create(
        platform=chat.platform,
        account=chat.account,
        kind=chat.kind,
        peer_id=chat.peer_id,
        defaults={"last_message_at": now},
    )
    is_paused = row.pause_reason and (row.paused_until is None or row.paused_until > now)
    is_silenced = manners.find_silence(now)
    silence = "已被静音" if is_silenced else "机器人在那里不能发言" if is_paused else ""
    if row.is_taken_over:
        silence = "正由管理员接管"
    return OpenedChat(row.pk, silence, manners.sends_per_minute, manners.part_chars)


def load_session_state(session_pk: int | None) -> SessionState:
    """Nothing without a chat, or when its row is gone."""
    rows = statements.find_session_state.rows(session=session_pk) if session_pk else []
    return read_session_state(rows[0]) if rows else SessionState()


def read_session_state(columns: Sequence[Any]) -> SessionState:
    """From the ``columns`` of a row that :data:`statements.find_session_state` names."""
    state, is_on, is_continuing, names, context_after, operator, until, has_notes = columns
    is_over = until is not None and until <= timezone.now()
    return SessionState(
        parse_stored_state(state),
        ChatGateSetting(is_on, is_continuing),
        parse_discovered_tools(names),
        context_after,
        "" if is_over else operator or "",
        bool(has_notes),
    )


def find_title(chat: ChatAddress) -> str:
    """What a chat is called on record; "" where it has no name, or no row."""
    return _rows(chat).values_list("title", flat=True).first() or ""


def name_chat(chat: ChatAddress, title: str) -> None:
    """Keep the name of a chat that has none."""
    _rows(chat).filter(title="").update(title=title)


def _rows(chat: ChatAddress) -> QuerySet[ChatSession]:
    return ChatSession.objects.filter(
        platform=chat.platform, account=chat.account, kind=chat.kind, peer_id=chat.peer_id
    ).order_by()


def set_continuing(session_pk: int, is_continuing: bool) -> None:
    """Keep of (a session, whether) that a continuation is active, or that it is not."""
    ChatSession.objects.filter(pk=session_pk).update(is_continuing=is_continuing)


def parse_stored_state(stored: object) -> dict[str, Any]:
    """The state of a chat in the column that keeps it."""
    return dict(stored) if isinstance(stored, Mapping) else {}


def save_changes(changes: Iterable[StateChange]) -> None:
    """Store ``changes`` in order. Must run in a transaction: names that were not changed keep what
    others stored."""
    for change in changes:
        row = ChatSession.objects.select_for_update().filter(pk=change.session_pk)
        for state in row.order_by().values_list("state", flat=True):
            row.update(state=change.apply_to(parse_stored_state(state)))


def save_discoveries(discoveries: Iterable[ToolDiscovery]) -> None:
    """Append the new discoveries to the stored ones. Must run in a transaction."""
    for discovery in discoveries:
        row = ChatSession.objects.select_for_update().filter(pk=discovery.session_pk)
        for stored in row.order_by().values_list("discovered_tools", flat=True):
            names = dict.fromkeys((*parse_discovered_tools(stored), *discovery.names))
            row.update(discovered_tools=list(names)[-MOST_KEPT:])


def parse_discovered_tools(stored: object) -> tuple[str, ...]:
    """The names of the tools that were found in a chat, in that order, in the column that keeps
    them."""
    return (
        tuple(name for name in stored if isinstance(name, str)) if isinstance(stored, list) else ()
    )
