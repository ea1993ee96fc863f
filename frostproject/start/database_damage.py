"""Damage of the database file that is first found while the program runs: logged, with what to
do."""

import logging
import sqlite3
from types import TracebackType

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DatabaseErrorWrapper

from agent.runtime.database import damaged_file_error, is_damage_error
from tools.error_boundary import LogLimit

_log = LogLimit(logging.getLogger(__name__))


def watch_database_errors(connection: BaseDatabaseWrapper, **_signal: object) -> None:
    """Listen to what ``connection``, just opened, will say of its file. A receiver of
    ``connection_created``."""
    if connection.vendor == "sqlite":
        connection.wrap_database_errors = _WatchedErrors(connection)


class _WatchedErrors(DatabaseErrorWrapper):
    """Where errors of SQLite become errors of Django."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            return
        if isinstance(error, sqlite3.DatabaseError) and is_damage_error(error):
            _log.warn("damage", "%s", damaged_file_error(str(error)))
        super().__exit__(kind, error, traceback)
