"""Checks of the database at start: it is complete, fits this program, and is the one used before.

A program that starts to work with it (the server, ``manage.py chat``) calls
:func:`migrate_embedded_database`; ``doctor`` looks with :func:`check_migrations`. A server without
these checks would lose every message silently.
"""

import contextlib
import gc
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.utils.module_loading import module_has_submodule
from django.utils.translation import gettext as _

from agent.memory import note_visibility

#: Names that one sentence holds.
NAMED = 5
#: How SQLite says that a file is no longer what it wrote.
DAMAGE = ("malformed", "not a database", "vtable constructor failed", "database corruption")
UNWRITABLE = ("readonly database", "unable to open database file")
MISFIT = ("no such table", "no such column", "already exists", "duplicate column")
_PRESENT = {
    "sqlite": "SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p"
    " WHERE m.type = 'table'"
    " UNION ALL SELECT name, '' FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT c.relname, a.attname FROM pg_class c"
    " JOIN pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped"
    " AND pg_table_is_visible(c.oid)"
    " UNION ALL SELECT relname, '' FROM pg_class WHERE relkind = 'i' AND pg_table_is_visible(oid)",
}


class DatabaseRefused(ImproperlyConfigured):
    """This database cannot be used. ``text`` says why in a sentence, ``advice`` what to do."""

    def __init__(self, text: str, advice: str) -> None:
        super().__init__(f"{text} {advice}")
        self.text = text
        self.advice = advice


# --- At the start -----------------------------------------------------------------


def migrate_embedded_database() -> None:
    """Migrate the embedded database where that is needed. Raises :class:`DatabaseRefused`."""
    with explain_database_errors():
        if not check_migrations():
            if connection.vendor != "sqlite":
                raise DatabaseRefused(
                    _("The database is older than the program."), _("Run: python manage.py migrate")
                )
            gc.enable()  # a server does without while it loads; migrations leave hundreds of MiB
            connection.disable_constraint_checking()  # not possible inside a transaction
            try:
                # All migrations or none: Django alone records some after their commit, and what
                # broke off there never starts again. Each checks constraints at its end.
                with transaction.atomic():
                    call_command("migrate", verbosity=0, interactive=False)
            finally:
                connection.enable_constraint_checking()
            _refuse_incomplete()
    if connection.vendor == "sqlite" and not marker_path().exists():
        with contextlib.suppress(OSError):  # it can still be written at the next start
            marker_path().write_text(
                _("While this file is here, a lost database is not taken for a first start.")
                + "\n",
                "utf-8",
            )


def check_migrations() -> bool:
    """Whether the database is up to date. Raises :class:`DatabaseRefused` when a migration would
    not repair it."""
    if connection.vendor == "sqlite":
        _refuse_lost()
    if set(MigrationRecorder(connection).applied_migrations()) == _find_migrations():
        _refuse_incomplete()
        return True
    executor = MigrationExecutor(connection)
    known = executor.loader.disk_migrations
    replaced = {old for migration in known.values() for old in migration.replaces}
    if unknown := set(executor.loader.applied_migrations) - set(known) - replaced:
        text = _("The database was made by a newer version of the program, which knows %s.")
        advice = _("Update the program, or restore a backup that this version has made.")
        raise DatabaseRefused(text % _named(".".join(names) for names in unknown), advice)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return False
    _refuse_incomplete()
    return True


def _find_migrations() -> set[tuple[str, str]]:
    """The names of all migrations. None is imported: at nearly every start all are applied."""
    found = set()
    for app in apps.get_app_configs():
        if module_has_submodule(app.module, "migrations"):
            folders = import_module(f"{app.name}.migrations").__path__
            found |= {(app.label, one.name) for one in iter_modules(folders)}
    return found


def marker_path() -> Path:
    """The file next to the embedded database which shows that one was made; a first start that
    failed leaves none."""
    return Path(f"{connection.settings_dict['NAME']}.made")


def _refuse_lost() -> None:
    file = Path(connection.settings_dict["NAME"])
    if not marker_path().exists() or (
        file.exists() and file.stat().st_size and connection.introspection.table_names()
    ):
        return
    text = _("The database %s is missing or empty, and there has been one.") % file
    advice = _(
        "Put the file back or restore a backup. "
        "To begin anew without what it held, delete %s and start again."
    )
    raise DatabaseRefused(text, advice % marker_path())


def _refuse_incomplete() -> None:
    if lacking := find_missing_schema():
        text = _("The database lacks what the program needs: %s.")
        raise DatabaseRefused(text % _named(lacking), _misfit_advice())


def find_missing_schema() -> list[str]:
    """Tables, ``table.column`` and parts of the notes' search that the code needs and the database
    does not have."""
    models = [
        model._meta for model in apps.get_models(include_auto_created=True) if model._meta.managed
    ]
    needed = {
        (model.db_table, field.column) for model in models for field in model.local_concrete_fields
    }
    needed |= set(note_visibility.PARTS[connection.vendor])
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT[connection.vendor])
        present = {(str(table), str(column)) for table, column in cursor.fetchall()}
    tables = {table for table, _column in present}
    return sorted(
        {f"{table}.{column}" if table in tables else table for table, column in needed - present}
    )


def _named(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - NAMED
    return ", ".join(ordered[:NAMED]) + (" " + _("and %d more") % more if more > 0 else "")


def _misfit_advice() -> str:
    return _(
        "It was made by a state of the program between two versions, or is damaged: "
        "restore a backup that fits, or begin anew with an empty database."
    )


# --- What a database says -----------------------------------------------------------


@contextlib.contextmanager
def explain_database_errors() -> Iterator[None]:
    """Turn what a database or its folder says into a sentence. Raises :class:`DatabaseRefused`."""
    try:
        yield
    except (DatabaseError, InconsistentMigrationHistory) as error:
        raise to_database_refused(error) from error
    except OSError as error:
        text = _("The data folder %(folder)s cannot be written: %(reason)s")
        folder = Path(error.filename or connection.settings_dict["NAME"]).parent
        raise DatabaseRefused(
            text % {"folder": folder, "reason": error.strerror}, _ownership_advice()
        ) from error


def to_database_refused(error: Exception) -> DatabaseRefused:
    """The meaning of ``error`` for the person who started the program."""
    said = " ".join(str(error).split())
    text = _("The database cannot be used: %s") % said
    if connection.vendor != "sqlite":
        return DatabaseRefused(text + ".", _("Is it running, and is DATABASE_URL right?"))
    file = connection.settings_dict["NAME"]
    if is_damage_error(error):
        return damaged_file_error(said)
    if "is full" in said:
        text = _("There is no room left for the database %s.") % file
        return DatabaseRefused(text, _("Make room: without it, messages cannot be recorded."))
    if any(words in said for words in UNWRITABLE):
        text = _("The database %(file)s cannot be written: %(said)s.")
        return DatabaseRefused(text % {"file": file, "said": said}, _ownership_advice())
    if any(words in said for words in MISFIT) or isinstance(error, InconsistentMigrationHistory):
        return DatabaseRefused(text + ".", _misfit_advice())
    return DatabaseRefused(
        text + ".", _("Is the disk full, or the file damaged? Restore it from a backup.")
    )


def _ownership_advice() -> str:
    return _("Give it to the user that runs the server, or name another one in FROST_DATA_DIR.")


def is_damage_error(error: BaseException) -> bool:
    """Whether SQLite says by ``error`` that the file is damaged."""
    return any(words in str(error) for words in DAMAGE)


def damaged_file_error(said: str) -> DatabaseRefused:
    """What to do about a damaged file."""
    file = connection.settings_dict["NAME"]
    text = _("The database file %(file)s is damaged: %(said)s.") % {"file": file, "said": said}
    advice = _(
        "Stop the server, copy the file away together with its -wal and -shm, "
        "and restore the newest backup. Without one, save what can be read: %s"
    )
    return DatabaseRefused(text, advice % f"sqlite3 {file} .recover | sqlite3 recovered.sqlite3")


def check_integrity() -> None:
    """Read the whole embedded database once, which takes a while. Raises :class:`DatabaseRefused`
    when it is damaged."""
    with explain_database_errors(), connection.cursor() as cursor:
        cursor.execute("PRAGMA quick_check(1)")
        (said,) = cursor.fetchone()
    if said != "ok":
        raise damaged_file_error(" ".join(said.split()))
