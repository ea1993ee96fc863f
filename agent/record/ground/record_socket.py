"""The one connection of the thread that writes, and a way to cut it off from another thread.

A statement waits for its server without end. One that is frozen behind a living peer (a stopped
process, a pooler, a machine that was paused) answers neither a cancellation nor a keepalive: only
the end of the socket wakes the thread that waits.
"""

import contextlib
import math
import os
import socket
import time
from typing import Any

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agent.record.ground.idle_transactions import limit_statements

#: How long a server may take to be dialled once the process ends, in seconds.
LAST_DIAL_SECONDS = 2


class RecordSocket:
    """:meth:`dial_directly` is called once, in the thread that writes; the others in any."""

    def __init__(self) -> None:
        self._database: BaseDatabaseWrapper | None = None
        self._last_dial = math.inf

    def dial_directly(self) -> None:
        """Have this thread keep a connection of its own: a pool waits longer and longer before it
        dials a lost server again."""
        usual = connections[DEFAULT_DB_ALIAS]
        if usual.vendor != "postgresql":
            return
        options = usual.settings_dict.get("OPTIONS", {})
        own = {name: value for name, value in options.items() if name != "pool"}
        settings = {**usual.settings_dict, "OPTIONS": own}
        database = connections[DEFAULT_DB_ALIAS] = type(usual)(settings, DEFAULT_DB_ALIAS)
        dial = database.get_new_connection

        def dial_in_time(parameters: object) -> Any:
            if time.monotonic() > self._last_dial:
                raise OperationalError("it does not answer")
            return dial(parameters)

        database.get_new_connection = dial_in_time  # type: ignore[assignment, method-assign]
        self._database = database
        limit_statements()

    def dial_until(self, end: float) -> None:
        """Have a lost server dialled again only if that ends before ``end``, of the monotonic
        clock."""
        self._last_dial = end - LAST_DIAL_SECONDS
        if self._database is not None:
            self._database.settings_dict["OPTIONS"]["connect_timeout"] = LAST_DIAL_SECONDS

    def cut(self) -> None:
        """End the socket to the server; who waits for it fails. Nothing where there is none."""
        from psycopg import Error

        raw = getattr(self._database, "connection", None)
        if (server := getattr(raw, "pgconn", None)) is None:
            return
        with contextlib.suppress(OSError, Error):  # it may be closed at this very moment
            copy = socket.socket(fileno=os.dup(server.socket))
            with copy:
                copy.shutdown(socket.SHUT_RDWR)
