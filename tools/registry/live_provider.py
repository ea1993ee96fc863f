"""Providers whose tools come from rows: servers, plugins and HTTP requests that the operator sets
up while the bot runs."""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar, TypeVarTuple

from tools.contract import ToolProvider
from tools.live_rows import LiveKind
from tools.secrets.masked import SecretValues

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class DatabaseThread(Protocol):
    """The one thread of this process that talks to the database."""

    process_id: str

    def submit(self, function: Callable[[*Ts], R], *args: *Ts) -> "asyncio.Future[R]":
        """Have ``function(*args)`` run there, inside a transaction; done when committed."""
        ...


class LiveProvider(ToolProvider, Protocol):
    """A provider that follows its rows.

    Both methods may come in any order; until both were called it offers nothing.
    """

    kind: LiveKind
    """Of the rows that it follows."""

    def reload(self) -> None:
        """Read the rows. Called in the database thread, inside a transaction, whenever one of them
        may have changed.

        What is switched off in them must not be listed or called any more from then on.
        """
        ...

    def reload_secrets(self, secrets: SecretValues) -> None:
        """The same where nothing but the secrets may have changed."""
        ...

    def start(self) -> None:
        """Start, once, on the event loop of the server. Returns immediately."""
        ...

    def absence(self, tool_name: str) -> str:
        """Why a tool of that name from this provider is unavailable now: a sentence for the model;
        "" for a tool that does not come from here."""
        ...
