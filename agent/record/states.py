"""The states of chats on record."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.domain.state import StateChange
from agent.models import ChatSession


def parse_stored_state(stored: object) -> dict[str, Any]:
    """The state of a chat in the column that keeps it."""
    return dict(stored) if isinstance(stored, Mapping) else {}


def save_changes(changes: Sequence[StateChange]) -> list[None]:
    """Store ``changes`` in order. Must run in a transaction: names that were not changed keep what
    others stored."""
    for change in changes:
        row = ChatSession.objects.select_for_update().filter(pk=change.session_pk)
        for state in row.order_by().values_list("state", flat=True):
            row.update(state=change.applied(parse_stored_state(state)))
    return [None] * len(changes)
