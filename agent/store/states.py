"""The states of chats on record."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.models import ChatSession
from agent.state import StateChange
from agent.store.prepared import Select

#: The state of one session; its parameter is the session.
state_query = Select(ChatSession.objects.filter(pk=0).order_by().values_list("state"))


def load_state(session_pk: int | None) -> dict[str, Any]:
    """The stored values of a chat; none without a chat, or when its row is gone."""
    rows = state_query(session_pk) if session_pk is not None else []
    return dict(rows[0][0]) if rows and isinstance(rows[0][0], Mapping) else {}


def save_changes(changes: Sequence[StateChange]) -> list[None]:
    """Store ``changes`` in order. Must run in a transaction: names that were not changed keep what others stored."""
    for change in changes:
        row = ChatSession.objects.select_for_update().filter(pk=change.session_pk)
        for state in row.order_by().values_list("state", flat=True):
            row.update(state=change.applied(state if isinstance(state, Mapping) else {}))
    return [None] * len(changes)
