"""What a server lists, and how a connection to one looks to who uses it; without the library that
makes them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from tools.mcp.settings import McpServerSettings

Json = Mapping[str, Any]
ENTRY_ERROR_KEY = "frostagent/fault"
"""In the ``_meta`` of a listed tool: why its entry cannot be read. The tool is left out for it."""


class ProgressCallback(Protocol):
    """Called with the progress of a call, in the server's own unit."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools of a server as it declares them; ``problem`` is what could not be read; valid for
    ``seconds``."""

    tools: tuple[Json, ...] = ()
    problem: str = ""
    seconds: float | None = None


class McpSession(Protocol):
    """A live session. All but the making and the ending may be done from any task of its loop."""

    about: Json
    """The server's description of itself: ``name``, ``version``, ``title``, ``protocol``,
    ``instructions``."""

    @property
    def is_lost(self) -> bool:
        """Whether it is known to be of no use any more."""
        ...

    async def list_tools(self) -> ToolListing:
        """Raises a :class:`tools.mcp.errors.McpClientError`, as do all below."""
        ...

    async def call(
        self, name: str, arguments: Json, progress: ProgressCallback | None = None
    ) -> Json:
        """The server's result. When cancelled, the server was notified, and the session stays
        usable."""
        ...

    async def ping(self) -> None:
        """Return when the server has answered something."""
        ...


@dataclass(frozen=True, slots=True)
class SessionCallbacks:
    """The callbacks of a connection; they run at any time, on its event loop."""

    lost: Callable[[], None]
    changed: Callable[[], None]


SessionOpener = Callable[
    [McpServerSettings, SessionCallbacks, bool], AbstractAsyncContextManager[McpSession]
]
"""A connection for as long as the block: entered, and left, in one and the same task.

The last argument is whether to begin in the old way, for servers that the question for
newer ones ends. Raises a :class:`tools.mcp.errors.McpClientError`, or another exception when it
breaks while it is used.
"""
