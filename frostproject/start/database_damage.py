"""Damage of the database file that is first found while the program runs: logged, with what to
do."""

import logging
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from agent.runtime.database import damaged_file_error, is_damage_error
from tools.error_boundary import LogLimit

_log = LogLimit(logging.getLogger(__name__))


def watch_database_errors(connection: BaseDatabaseWrapper, **_signal: object) -> None:
    """Listen to what ``connection``, just opened, will say of its file. A receiver of
    ``connection_created``."""
    if connection.vendor == "sqlite" and _listen not in connection.execute_wrappers:
        connection.execute_wrappers.append(_listen)


def _listen(
    execute: Callable[..., Any], sql: str, parameters: object, many: bool, context: dict[str, Any]
) -> Any:
    try:
        return execute(sql, parameters, many, context)
    except DatabaseError as error:
        if is_damage_error(error):
            _log.warn("damage", "%s", damaged_file_error(str(error)))
        raise
