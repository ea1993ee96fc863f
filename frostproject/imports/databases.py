"""SQLite databases of other programs, of which a copy is read and nothing is believed."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from frostproject.imports.plan import ImportRefused

#: Rows of one table, bytes of one value, and steps of SQLite's machine for one file.
MOST_ROWS, MOST_VALUE, MOST_STEPS = 5_000, 16 << 20, 200_000_000
_STEPS = 100_000
MAGIC = b"SQLite format 3\0"

#: The columns that are read, by table; of a table without any only whether it holds something.
TABLES: dict[str, tuple[str, ...]] = {
    "personas": (
        *("persona_id", "system_prompt", "begin_dialogs", "tools", "skills"),
        "custom_error_message",
    ),
    **dict.fromkeys(("conversations", "cron_jobs", "platform_message_history"), ()),
    "model_providers": ("uuid", "name", "requester", "base_url", "api_keys"),
    "llm_models": (
        *("uuid", "name", "provider_uuid", "requester", "requester_config", "api_keys"),
        *("abilities", "extra_args"),
    ),
    "legacy_pipelines": ("uuid", "name", "is_default", "config"),
    "bots": ("name", "adapter", "enable", "use_pipeline_uuid"),
    "mcp_servers": ("name", "enable", "mode", "extra_args"),
    **dict.fromkeys(("embedding_models", "plugin_settings", "knowledge_bases"), ()),
}
Tables = dict[str, list[dict[str, Any]]]


def read_tables(file: Path) -> Tables:
    """The rows of the known tables of ``file``. Raises :class:`ImportRefused`.

    Of a copy, with what a running program has not moved into the file yet: nobody's lock holds it,
    and opening it writes nothing beside the file."""
    try:
        with tempfile.TemporaryDirectory(prefix="frost-import-") as folder:
            copy, log = Path(folder, "copy.db"), file.with_name(f"{file.name}-wal")
            shutil.copyfile(file, copy)
            if log.is_file() and not log.is_symlink():
                shutil.copyfile(log, copy.with_name("copy.db-wal"))
            with closing(sqlite3.connect(copy, timeout=0)) as database:
                _harden(database)
                return dict(_read(database))
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise ImportRefused(
            _("%(file)s cannot be read as a database: %(reason)s."), file=file.name, reason=error
        ) from error


def _harden(database: sqlite3.Connection) -> None:
    left = iter(range(MOST_STEPS // _STEPS))
    database.set_progress_handler(lambda: next(left, None) is None, _STEPS)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
        database.execute(f"PRAGMA {pragma}")


def _read(database: sqlite3.Connection) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Tables alone: a view or a virtual table can be made to run for ever."""
    plain = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    found = {table for (table,) in database.execute(plain)}
    for table in TABLES.keys() & found:
        there = {row[1] for row in database.execute(f'PRAGMA table_info("{table}")')}
        columns = [name for name in TABLES[table] if name in there]
        chosen = ", ".join(f'"{name}"' for name in columns) or "1"
        most = MOST_ROWS + 1 if columns else 1
        query = f'SELECT {chosen} FROM "{table}" LIMIT {most}'  # noqa: S608 - names from above
        rows = database.execute(query).fetchall()
        if len(rows) > MOST_ROWS:
            raise ImportRefused(
                _("The table %(table)s has more than %(most)d rows."), table=table, most=MOST_ROWS
            )
        yield table, [dict(zip(columns, row, strict=False)) for row in rows]
