"""What the row of a chat keeps from one run for the next, in one look."""

from dataclasses import dataclass, field
from typing import Any

from agent.models import ChatSession
from agent.record.compiled_sql import PreparedSelect
from agent.record.discoveries import parse_discovered_tools
from agent.record.gates import ChatGateSetting
from agent.record.states import parse_stored_state

#: Its parameter is the session.
session_state_query = PreparedSelect(
    ChatSession.objects.filter(pk=0)
    .order_by()
    .values_list("state", "timing_gate", "is_continuing", "discovered_tools")
)


@dataclass(frozen=True, slots=True)
class SessionState:
    """The chat's state, what it says of the timing gate, and the deferred tools that were found in
    it."""

    state: dict[str, Any] = field(default_factory=dict)
    gate: ChatGateSetting = field(default_factory=ChatGateSetting)
    discovered: tuple[str, ...] = ()


def load_session_state(session_pk: int | None) -> SessionState:
    """Nothing without a chat, or when its row is gone."""
    rows = session_state_query(session_pk) if session_pk is not None else []
    if not rows:
        return SessionState()
    state, is_on, is_continuing, names = rows[0]
    return SessionState(
        parse_stored_state(state),
        ChatGateSetting(is_on, is_continuing),
        parse_discovered_tools(names),
    )
