"""The rows of chats, as the transactions of one process find and remember them."""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db import transaction

from agent.domain.states import PauseReason
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import ChatSession
from agent.record.chats.sessions import SessionState, read_session_state
from agent.record.ground import statements

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

    def find(self, arrivals: Sequence[tuple[IncomingMessage, datetime]]) -> list[TouchedSession]:
        """The sessions that messages belong to, each with when it came; a new title is taken over.

        Raises :class:`StaleSession` when a row that is remembered is not there any more.
        """
        found: dict[ChatAddress, KnownSession] = {}
        for message, received_at in arrivals:
            chat, title = message.chat, message.chat_title[:TITLE_LIMIT]
            known = found.get(chat) or self._known.get(chat)
            if known is None or (title and known.title != title):
                known = _find_or_create_session(chat, title, received_at)
            found[chat] = known
        touched = _touch_sessions(found, arrivals[-1][1])
        transaction.on_commit(partial(self._remember, found), robust=True)
        return [touched[message.chat] for message, _ in arrivals]

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


def _find_or_create_session(chat: ChatAddress, title: str, now: datetime) -> KnownSession:
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


def _touch_sessions(
    found: dict[ChatAddress, KnownSession], now: datetime
) -> dict[ChatAddress, TouchedSession]:
    """Record that there is something new in chats, each of which has to be the one that its row
    says; the rows."""
    touched = {}
    for chat in sorted(found, key=lambda chat: found[chat].pk):
        pk = found[chat].pk
        rows = statements.touch_session.rows(pk=pk, now=now, **_columns(chat))
        if not rows:
            raise StaleSession(f"the session {pk} is not what it was")
        title, pause, until, *columns = rows[0]
        *_, operator, taken_until, _has_notes = columns
        reason, kept = PauseReason(pause) if pause else None, read_session_state(columns)
        touched[chat] = TouchedSession(pk, title, reason, until, operator or "", taken_until, kept)
    return touched
