"""The database as it was at one moment, read while others go on writing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.utils.translation import gettext as _

from frostproject.backup.refused import BackupError, Tell

ALIAS = "snapshot"
PAGES = 1_000
"""Pages copied between two words about it."""


@contextmanager
def open_snapshot(folder: Path, tell: Tell) -> Iterator[str]:
    """The alias of a database that does not change. ``folder`` is for a copy of the embedded one:
    reading that itself would keep its log from being cleared all the while."""
    if connection.vendor != "sqlite":
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield DEFAULT_DB_ALIAS
        return
    copy = folder / "database.sqlite3"
    try:
        _copy(Path(connection.settings_dict["NAME"]), copy, tell)
    except sqlite3.Error as error:
        words = _("The database could not be copied to %(folder)s: %(reason)s")
        raise BackupError(words % {"folder": folder.parent, "reason": error}) from error
    connections.databases[ALIAS] = {**connection.settings_dict, "NAME": str(copy), "OPTIONS": {}}
    try:
        yield ALIAS
    finally:
        connections[ALIAS].close()
        del connections[ALIAS], connections.databases[ALIAS]


def _copy(database: Path, copy: Path, tell: Tell) -> None:
    """By SQLite itself, within one transaction that reads: else whatever others write makes it
    begin anew."""
    with (
        closing(sqlite3.connect(database, timeout=20, isolation_level=None)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source.backup(
            target,
            pages=PAGES,
            progress=lambda _status, left, total: tell(_("Database"), total - left, total),
            sleep=0,
        )
        source.execute("COMMIT")
        target.execute("PRAGMA journal_mode=delete")
