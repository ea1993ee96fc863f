"""The rows of chats: what they keep from one run for the next (the state, whether a continuation is
active, the deferred tools that were found), and how transactions find and remember them."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agent.domain.chat_state import StateChange, ToolDiscovery
from agent.domain.manners import MOST_PART_CHARS, ChatManners
from agent.domain.states import PauseReason
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import ChatSession
from agent.record.ground import statements
from agent.record.ground.versions import parse_versions

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
        parse_stored_state(state) if state else {},
        ChatGateSetting(is_on, is_continuing),
        parse_discovered_tools(names) if names else (),
        context_after,
        "" if is_over else operator or "",
        bool(has_notes),
    )


def find_title(chat: ChatAddress) -> str:
    """What a chat is called on record; "" where it has no name, or no row."""
    found = statements.find_session.rows(**_columns(chat))
    return found[0][1] if found else ""


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


# As the transactions of one process find and remember them.

#: Sessions whose row is cached, so that a known chat needs no query.
REMEMBERED_SESSIONS = 10_000
TITLE_LIMIT = 200


class KnownSession(NamedTuple):
    """What is remembered of a chat's row."""

    pk: int
    title: str


class TouchedSession(NamedTuple):
    """A chat's row as it is when something is said there, with ``kept`` for a run that begins."""

    pk: int
    title: str
    pause_reason: PauseReason | None
    paused_until: datetime | None
    taken_over_by: str
    taken_over_until: datetime | None
    seen: dict[str, datetime]
    """When what was asked for is on record already, by event key."""
    kept: SessionState

    def find_pause(self, now: datetime) -> PauseReason | None:
        """Why the account cannot speak in the chat, at ``now``; None where it can."""
        is_over = self.paused_until is not None and self.paused_until <= now
        return None if is_over else self.pause_reason

    def find_operator(self, now: datetime) -> str:
        """Who answers there instead of the bot, at ``now``; "" for nobody."""
        is_over = self.taken_over_until is not None and self.taken_over_until <= now
        return "" if is_over else self.taken_over_by


class SessionCache:
    """Chat address to session row, made when first seen. Used by the database thread only.

    What is remembered was committed; rows of the present transaction are known to it alone.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[ChatAddress, KnownSession] = OrderedDict()

    def find(
        self, arrivals: Sequence[tuple[IncomingMessage, datetime, list[str]]]
    ) -> tuple[list[TouchedSession], Mapping[int, int]]:
        """The sessions that messages belong to, each with when it came and the event keys under
        which it is looked for; a new title is taken over. And the numbers of
        :func:`agent.record.ground.versions.read_versions`.

        Raises :class:`StaleSession` when a row that is remembered is not there any more.
        """
        found: dict[ChatAddress, KnownSession] = {}
        keys: dict[ChatAddress, list[str]] = {}
        for message, received_at, event_keys in arrivals:
            chat, title = message.chat, message.chat_title[:TITLE_LIMIT]
            known = found.get(chat) or self._known.get(chat)
            if known is None or (title and known.title != title):
                known = find_or_create_session(chat, title, received_at)
            found[chat] = known
            keys.setdefault(chat, []).extend(event_keys)
        now, touched, versions = arrivals[-1][1], dict[ChatAddress, TouchedSession](), ""
        for pk, _, chat in sorted((found[chat].pk, at, chat) for at, chat in enumerate(found)):
            touched[chat], versions = _touch_session(pk, chat, keys[chat], now)
        transaction.on_commit(partial(self._remember, found), robust=True)
        return [touched[message.chat] for message, *_ in arrivals], parse_versions(versions)

    def forget(self) -> None:
        """Forget all cached rows: another process may have deleted some."""
        self._known.clear()

    def _remember(self, found: dict[ChatAddress, KnownSession]) -> None:
        for chat, known in found.items():
            self._known[chat] = known
            self._known.move_to_end(chat)
        while len(self._known) > REMEMBERED_SESSIONS:
            self._known.popitem(last=False)


class StaleSession(Exception):  # noqa: N818 - the word says what happened
    """A session that was remembered is gone, or another chat's: the transaction is tried again
    without what was remembered."""


def _columns(chat: ChatAddress) -> dict[str, str]:
    return {
        "platform": chat.platform,
        "account": chat.account,
        "kind": chat.kind,
        "peer_id": chat.peer_id,
    }


def find_or_create_session(chat: ChatAddress, title: str, now: datetime) -> KnownSession:
    """The row of a chat, made where there is none; a ``title`` is taken over."""
    found = statements.find_session.rows(**_columns(chat))
    if not found:
        # Should another process be faster, the transaction fails, and finds the row when it is
        # tried again.
        [pk] = statements.add_sessions.add([{**_columns(chat), "title": title, "now": now}])
        return KnownSession(pk, title)
    [(pk, known)] = found
    if title and known != title:
        ChatSession.objects.filter(pk=pk).update(title=title)
    return KnownSession(pk, title or known)


def _touch_session(
    pk: int, chat: ChatAddress, keys: list[str], now: datetime
) -> tuple[TouchedSession, str]:
    """Record that there is something new in a chat, which has to be the one that its row says; the
    row, and the numbers of the settings."""
    rows = statements.touch_session.rows(pk=pk, now=now, keys=keys, **_columns(chat))
    if not rows:
        raise StaleSession(f"the session {pk} is not what it was")
    [(title, pause, until, versions, seen, *columns)] = rows
    *_, operator, taken_until, _has_notes = columns
    reason, kept = PauseReason(pause) if pause else None, read_session_state(columns)
    known = {key: statements.parse_moment(at) for key, at in seen or ()}
    chat_row = TouchedSession(pk, title, reason, until, operator or "", taken_until, known, kept)
    return chat_row, versions
