"""What the row of a chat keeps from one run for the next, in one look."""

from dataclasses import dataclass, field
from typing import Any

from agent.models import ChatSession
from agent.store.discoveries import discovered
from agent.store.gates import Gate
from agent.store.prepared import Select
from agent.store.states import state_of

#: Its parameter is the session.
kept_query = Select(
    ChatSession.objects.filter(pk=0).order_by().values_list("state", "timing_gate", "is_continuing", "discovered_tools")
)


@dataclass(frozen=True, slots=True)
class Kept:
    """The chat's state, what it says of the timing gate, and the deferred tools that were found in it."""

    state: dict[str, Any] = field(default_factory=dict)
    gate: Gate = field(default_factory=Gate)
    discovered: tuple[str, ...] = ()


def kept_of(session_pk: int | None) -> Kept:
    """Nothing without a chat, or when its row is gone."""
    rows = kept_query(session_pk) if session_pk is not None else []
    if not rows:
        return Kept()
    state, is_on, is_continuing, names = rows[0]
    return Kept(state_of(state), Gate(is_on, is_continuing), discovered(names))
