"""The rows of chats, as the transactions of one process find and remember them."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db import transaction

from agent.domain.answer_policy import NO_OVERRIDES, LimitOverrides
from agent.domain.states import PauseReason
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import ChatSession
from agent.record.compiled_sql import PreparedInsert, PreparedSelect, PreparedUpdate

#: Sessions whose row is cached, so that a known chat needs no query.
REMEMBERED_SESSIONS = 10_000
TITLE_LIMIT = 200

#: The columns of a chat that override the limits of its account.
OWN_LIMITS = ("person_per_minute", "person_per_day", "chat_per_minute", "chat_per_day")

insert_sessions = PreparedInsert(ChatSession)
touch_sessions = PreparedUpdate(
    ChatSession, "last_message_at", where=("account", "kind", "peer_id", "platform")
)
#: Its parameters are account, kind, peer and platform: Django orders conditions by name.
session_query = PreparedSelect(
    ChatSession.objects.filter(account="", kind="", peer_id="", platform="")
    .order_by()
    .values_list("pk", "title", "pause_reason", "paused_until", "taken_over_by", *OWN_LIMITS)
)


class KnownSession(NamedTuple):
    """What is remembered of a chat's row."""

    pk: int
    title: str
    limits: LimitOverrides = NO_OVERRIDES
    pause_reason: PauseReason | None = None
    paused_until: datetime | None = None
    taken_over_by: str = ""
    """The operator who answers there instead of the bot."""

    def find_pause(self, now: datetime) -> PauseReason | None:
        """Why the account cannot speak in the chat, at ``now``; None where it can."""
        is_over = self.paused_until is not None and self.paused_until <= now
        return None if is_over else self.pause_reason


class SessionCache:
    """Chat address to session row, made when first seen. Used by the database thread only.

    What is remembered was committed; rows of the present transaction are known to it alone.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[ChatAddress, KnownSession] = OrderedDict()

    def find(self, arrivals: Sequence[tuple[IncomingMessage, datetime]]) -> list[KnownSession]:
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
        _touch_sessions(found, arrivals[-1][1])
        transaction.on_commit(partial(self._remember, found), robust=True)
        return [found[message.chat] for message, _ in arrivals]

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


def _find_or_create_session(chat: ChatAddress, title: str, now: datetime) -> KnownSession:
    place = {
        "account": chat.account,
        "kind": chat.kind,
        "peer_id": chat.peer_id,
        "platform": chat.platform,
    }
    found = session_query(*place.values())
    if not found:
        # Should another process be faster, the transaction fails, and finds the row when it is
        # tried again.
        [pk] = insert_sessions(
            [place | {"title": title, "created_at": now, "last_message_at": now}]
        )
        return KnownSession(pk, title)
    pk, known, pause, until, operator, *limits = found[0]
    if title and known != title:
        ChatSession.objects.filter(pk=pk).update(title=title)
    reason = PauseReason(pause) if pause else None
    return KnownSession(pk, title or known, tuple(limits), reason, until, operator or "")


def _touch_sessions(found: Mapping[ChatAddress, KnownSession], now: datetime) -> None:
    """Record that there is something new in chats, each of which has to be the one that its row
    says."""
    touched = sorted(
        (pk, chat.account, chat.kind, chat.peer_id, chat.platform)
        for chat, (pk, *_) in found.items()
    )
    if not all(touch_sessions.matching([(now, *row) for row in touched])):
        raise StaleSession(f"one of the sessions {[row[0] for row in touched]} is not what it was")
