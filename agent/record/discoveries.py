"""The deferred tools that chats have found, on record."""

from collections.abc import Iterable

from agent.domain.state import ToolDiscovery
from agent.models import ChatSession

MOST_KEPT = 100
"""Tools that a chat keeps; beyond that, what was found first has to be found again."""


def save_discoveries(discoveries: Iterable[ToolDiscovery]) -> None:
    """Add what was found behind what is stored. Must run in a transaction."""
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
