"""A backup becomes an installation: checked first, and then all of it or nothing."""

import gc
import json
import shutil
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
from django.utils.translation import gettext as _

from agent.models import UNSETTLED, Message, Run
from frostproject.backup import belongings, rows
from frostproject.backup.archive import FOLDERS, SETTINGS, Archive, rows_part
from frostproject.backup.refused import BackupError, Tell, damaged
from frostproject.backup.saving import is_running
from frostproject.settings import env
from frostproject.start import new_database
from onebot.models import Bot
from tools.secrets.encryption import DecryptionError, decrypt

SETTINGS_BYTES = 16 * 2**20
Names = list[tuple[str, str]]


class Restore:
    """One backup, checked against this program; :meth:`check` reads all of it, and :meth:`run`
    restores it."""

    def __init__(self, archive: Archive, tell: Tell) -> None:
        self._archive, self._tell = archive, tell
        self._manifest = archive.manifest
        self._tables: dict[str, dict[str, Any]] = self._manifest["tables"]
        loader = MigrationLoader(None)
        self._targets, self._is_current = self._find_targets(loader)
        state = apps if self._is_current else loader.project_state(self._targets).apps
        self._models = rows.tables_of(state)
        self.mended = 0
        """Rows with signs that PostgreSQL does not take, which were replaced."""
        self._check_tables()

    # --- Whether it can be ------------------------------------------------------------

    def check(self) -> None:
        """Read everything once. Raises BackupError."""
        self._load_settings()
        done, total = 0, sum(table["rows"] for table in self._tables.values())
        for label, table in self._tables.items():
            before = done
            for _row in self._read(label):
                done += 1
                self._tell(_("Checking rows"), done, total)
            if done - before != table["rows"]:
                raise damaged(label)
        files = self._files
        for number, part in enumerate(files, start=1):
            self._tell(_("Checking files"), number, len(files))
            with self._archive.part(part):
                pass

    def describe(self) -> Iterator[str]:
        """What it is, in words."""
        known = self._manifest
        yield _("Made at %(at)s by version %(version)s on %(engine)s") % {
            "at": ascii(known["made_at"])[1:-1],
            **{name: known[name] for name in ("version", "engine")},
        }
        count = sum(table["rows"] for table in self._tables.values())
        size = sum(facts[0] for facts in self._archive.parts.values()) >> 20
        words = _("%(rows)s rows, %(files)s files, %(size)s MiB")
        yield words % {"rows": f"{count:,}", "files": f"{len(self._files):,}", "size": f"{size:,}"}
        sealed = _("Sealed, with keys and tokens") if self._archive.is_sealed else ""
        yield sealed or _("Without keys and tokens: %s") % (", ".join(known["left_out"]) or "-")

    @property
    def _files(self) -> list[str]:
        return [part for part in self._archive.parts if part.partition("/")[0] in FOLDERS]

    def _find_targets(self, loader: MigrationLoader) -> tuple[Names, bool]:
        """The last migrations that the backup has of each app, and whether they are the last there
        are. Raises BackupError where this program does not know all of them."""
        parts = [name.partition(".") for name in self._manifest["migrations"]]
        names = {(app, name) for app, _dot, name in parts}
        if unknown := sorted(names - set(loader.disk_migrations)):
            words = _("The backup was made by a newer version, which knows %s: update this first.")
            raise BackupError(words % ascii(".".join(unknown[0]))[1:-1][:100])
        nodes = loader.graph.node_map  # without those that others stand for
        parents = {name: nodes[name].parents for name in names & nodes.keys()}
        needed = {(name[0], parent.key) for name in parents for parent in parents[name]}
        if not parents or {key for _app, key in needed} - names:
            raise damaged(_("its migrations"))
        targets = [name for name in sorted(parents) if (name[0], name) not in needed]
        return targets, names == set(loader.disk_migrations)

    def _check_tables(self) -> None:
        expected = {label: set(rows.columns_of(model)) for label, model in self._models.items()}
        if expected != {label: set(one["columns"]) for label, one in self._tables.items()}:
            raise damaged(_("its tables are not those of its migrations"))

    def _load_settings(self) -> dict[str, dict[str, str]]:
        try:
            with self._archive.part(SETTINGS) as stream:
                known = json.loads(stream.read(SETTINGS_BYTES))
            texts = [*known["environment"].items(), *known["files"].items()]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged(SETTINGS) from error
        is_known = known["files"].keys() <= set(belongings.KEY_FILES)
        if not is_known or any(not isinstance(text, str) for _name, text in texts):
            raise damaged(SETTINGS)
        return dict(known)

    def _read(self, label: str) -> Iterator[rows.Row]:
        mend = self._mend if connection.vendor == "postgresql" else None
        with self._archive.part(rows_part(label)) as lines:
            columns = self._tables[label]["columns"]
            yield from rows.read_rows(self._models[label], columns, lines, mend)

    def _mend(self, row: rows.Row) -> rows.Row:
        cleaned: rows.Row = rows.clean(row)
        self.mended += cleaned != row
        return cleaned

    # --- Restoring --------------------------------------------------------------------

    def run(self, *, replaces: bool = False) -> int:
        """All of it, or nothing where it raises BackupError; how many messages that were being
        answered are given up. ``replaces`` takes an installation that is not empty. To be called
        after :meth:`check`."""
        placed, self.mended = belongings.Placed(replaces=replaces), 0
        try:
            self._check_place(replaces=replaces)
            gc.enable()  # migrations leave hundreds of MiB
            connection.disable_constraint_checking()  # not possible inside a transaction
            with transaction.atomic():
                self._fill_database()
                given_up = self._give_up_what_was_under_way()
                self._place_belongings(placed)
        except BaseException as error:
            placed.take_back()
            if isinstance(error, ImproperlyConfigured | DatabaseError | OSError):
                words = _("Nothing was restored: %s") % " ".join(str(error).split())
                raise BackupError(words) from error
            raise
        finally:
            connection.enable_constraint_checking()
        placed.leave()
        return given_up

    def _check_place(self, *, replaces: bool) -> None:
        """Whether this installation is empty, and has room."""
        tables = set(connection.introspection.table_names())
        if is_running() if tables or connection.vendor == "sqlite" else False:
            raise BackupError(_("A server works on this installation. Stop it first."))
        kept = (one for one in (Message, Run, Bot) if one._meta.db_table in tables)
        if not replaces and any(model._base_manager.exists() for model in kept):
            words = _(
                "This installation is not empty: the database %s has messages, runs or bots. With "
                "--yes all of it is replaced."
            )
            raise BackupError(words % connection.settings_dict["NAME"])
        counted = self._files if connection.vendor != "sqlite" else self._archive.parts
        needed = sum(self._archive.parts[part][0] for part in counted)
        if needed > shutil.disk_usage(settings.DATA_DIR).free:
            words = _("There is no room for it: it takes %d MiB.")
            raise BackupError(words % (needed >> 20))

    def _fill_database(self) -> None:
        _check_at_once()
        new_database.empty()
        if self._is_current:
            new_database.fill(verbosity=0, interactive=False)
        else:
            MigrationExecutor(connection).migrate(self._targets)
        connection.check_constraints()
        tables = [model._meta.db_table for model in self._models.values()]
        is_cascading = connection.vendor == "postgresql"
        flush = connection.ops.sql_flush(no_style(), tables, allow_cascade=is_cascading)
        connection.ops.execute_sql_flush(flush)
        done, total = 0, sum(table["rows"] for table in self._tables.values())
        for label, model in self._models.items():
            columns = self._tables[label]["columns"]
            for count in rows.insert_rows(model, columns, self._read(label), connection):
                done += count
                self._tell(_("Restoring rows"), done, total)
            if isinstance(model._meta.pk, models.AutoField):
                _continue_after(model, self._tables[label]["last_id"])
        connection.check_constraints()
        ContentType.objects.clear_cache()
        if not self._is_current:
            _check_at_once()
            call_command("migrate", verbosity=0, interactive=False)

    def _give_up_what_was_under_way(self) -> int:
        """What a server went on with after the backup was made has its answer: a second one is not
        sent."""
        if not self._manifest["was_running"]:
            return 0
        now, state = timezone.now(), Message.State
        sent = Message.objects.filter(direction=Message.Direction.OUT, state=state.PENDING)
        sent.update(state=state.UNKNOWN, settled_at=now)
        return Message.objects.filter(UNSETTLED).update(
            state=state.EXPIRED, reason=Message.Reason.TOO_OLD, settled_at=now, claimed_by=""
        )

    def _place_belongings(self, placed: belongings.Placed) -> None:
        files, known = self._files, self._load_settings()
        placed.set_aside_all()
        for number, part in enumerate(files, start=1):
            self._tell(_("Restoring files"), number, len(files))
            placed.place_file(self._archive, part)
        for name, text in known["files"].items():
            placed.place_text(name, text)
        if lines := belongings.differing_settings(known["environment"]):
            placed.place_text(belongings.RESTORED_ENV, lines)

    def find_missing_keys(self) -> list[str]:
        """What has to be entered again, as the restored installation has it: what the backup leaves
        out, and rows that are sealed with another secret key."""
        if self._archive.is_sealed:
            return []
        left_out = [name for name in self._manifest["left_out"] if not env.text(name)]
        return [*left_out, *_find_unreadable()]


def _check_at_once() -> None:
    """PostgreSQL changes no table while something about its rows is still to be checked."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _continue_after(model: type[models.Model], last_id: int) -> None:
    """Have the next row of ``model`` get a number that none ever had."""
    table, column = model._meta.db_table, model._meta.pk.column
    highest = model._base_manager.aggregate(highest=models.Max("pk"))["highest"] or 0
    last = max(last_id, highest)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            setting = "SELECT setval(pg_get_serial_sequence(%s, %s), %s, %s)"
            cursor.execute(setting, [f'"{table}"', column, max(last, 1), last > 0])
        else:
            cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table])
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, last])


def _find_unreadable() -> Iterator[str]:
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            for row in model._base_manager.exclude(**{field.name: ""}) if _is_sealed(field) else ():
                try:
                    decrypt(getattr(row, field.attname))
                except DecryptionError:
                    yield f"{model._meta.verbose_name}: {row}"


def _is_sealed(field: Any) -> bool:
    return str(field.name).startswith("sealed") and isinstance(field, models.TextField)
