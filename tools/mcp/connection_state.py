"""The states of a connection to an MCP server, with what belongs to each, and what may be requested
of the task that owns it."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from tools.mcp.connection_status import State
from tools.mcp.listing import McpSession


@dataclass(frozen=True, slots=True)
class Connecting:
    """A session is being opened. Calls wait for it if it replaces one that has just ended."""

    is_replacement: bool = False


@dataclass(slots=True)
class Connected:
    """A session is open; times of the loop's clock say when it last answered and was last read."""

    session: McpSession
    since: datetime
    heartbeat_seconds: float
    heard_at: float = 0.0
    read_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A session has just ended; calls wait for the decision on what comes next."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Several tries failed; the next one follows."""

    retry_at: datetime


@dataclass(frozen=True, slots=True)
class Stopped:
    """Closed, or unusable until the row is changed or a new connection is requested."""


ConnectionState = Connecting | Connected | Ended | Waiting | Stopped
STATUS_STATES = {
    Connecting: State.CONNECTING.value,
    Connected: State.CONNECTED.value,
    Ended: State.CONNECTING.value,
    Waiting: State.WAITING.value,
    Stopped: State.STOPPED.value,
}
"""As the status of the server names them."""


class Request(Enum):
    """What other code requests of the task that owns the session."""

    CLOSE = auto()
    RECONNECT = auto()
    REREAD = auto()
    """Ask for the list of tools again."""
    REBUILD = auto()
    """Build the tools that are offered again, from the list as it was read."""


END_SESSION = frozenset({Request.CLOSE, Request.RECONNECT})
"""Requests for which an open session is ended."""
