"""A backup is made: rows, files and settings of this installation into one new file."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from agent.models import ServerProcess
from agent.record.waiting.recovery import LEASE_SECONDS
from agent.runtime import database
from frostproject.backup import belongings
from frostproject.backup.archive import SETTINGS, ArchiveWriter, is_part_name, rows_part
from frostproject.backup.refused import BackupError, Tell
from frostproject.backup.rows import columns_of, tables_of, write_rows
from frostproject.backup.snapshot import open_snapshot
from frostproject.start import bootstrap
from tools.secrets.masked import export_url


def _without_sign_in(url: str) -> str:
    """An address without the name and password that may be in it, and what it asks."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


#: Columns in which keys may stand in the clear, and what stands there where the file may hold none.
#: All others are sealed in their rows, with the key that such a file does not hold.
HIDDEN: dict[str, dict[str, Callable[[Any], Any]]] = {
    "agent.modelendpoint": {"base_url": _without_sign_in},
    "tools.mcpserver": {"url": export_url, "plain_arguments": lambda _arguments: []},
}


def save(file: Path, passphrase: str, tell: Tell) -> list[str]:
    """Make the backup ``file``, sealed where there is a ``passphrase`` and without keys otherwise;
    the files that were gone or could not be read meanwhile. Nothing is left of what cannot be
    finished. Raises BackupError."""
    try:
        if not database.check_migrations():
            words = _("There is no database yet, or it is older than the program. Start it first.")
            raise BackupError(words)
        if file.exists() or file.is_symlink():
            raise _exists(file)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=file.parent) as folder:
            draft = Path(folder, "draft")
            with open(draft, "xb", opener=_closed_to_others) as stream:
                with ArchiveWriter(stream, passphrase) as archive:
                    missed = _write(archive, Path(folder), passphrase, tell)
                stream.flush()
                os.fsync(stream.fileno())
            _name_for_good(draft, file)
    except ImproperlyConfigured as error:
        raise BackupError(str(error)) from error
    except DatabaseError as error:
        raise BackupError(str(database.to_database_refused(error))) from error
    except OSError as error:
        words = _("%(file)s cannot be written: %(reason)s")
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            words = _("There is no room for %(file)s: %(reason)s. Nothing was left of it.")
        raise BackupError(words % {"file": file, "reason": error.strerror or error}) from error
    return missed


def _closed_to_others(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _exists(file: Path) -> BackupError:
    return BackupError(_("%s is there already, and is not overwritten.") % file)


def _name_for_good(draft: Path, file: Path) -> None:
    """A link takes no place that is taken; not every file system has them."""
    try:
        os.link(draft, file)
    except FileExistsError:
        raise _exists(file) from None
    except OSError:
        os.rename(draft, file)


def _write(archive: ArchiveWriter, folder: Path, passphrase: str, tell: Tell) -> list[str]:
    was_running = is_running()
    with open_snapshot(folder, tell) as alias:
        facts = {
            "made_at": timezone.now().isoformat(timespec="seconds"),
            "engine": connection.vendor,
            "was_running": was_running,
            "migrations": _migrations(alias),
            "tables": _write_tables(archive, alias, tell, hides=not passphrase),
        }
        hidden = [] if passphrase else list(_find_hidden(alias))
    missed = _write_files(archive, tell)  # after the rows, so that what these name is there
    said, left_out = belongings.read_settings(with_keys=bool(passphrase))
    facts["left_out"] = [name[:200] for name in (*left_out, *hidden)]
    with archive.part(SETTINGS) as stream:
        stream.write(json.dumps(said).encode())
    archive.finish(facts)
    return missed


def is_running() -> bool:
    """Whether a server works on the database."""
    if connection.vendor == "sqlite":
        return bootstrap.is_database_in_use()
    alive = Now() - timedelta(seconds=LEASE_SECONDS)
    return ServerProcess.objects.filter(last_seen_at__gt=alive).exists()


def _migrations(alias: str) -> list[str]:
    applied = MigrationRecorder(connections[alias]).applied_migrations()
    return sorted(".".join(name) for name in applied)


def _write_tables(
    archive: ArchiveWriter, alias: str, tell: Tell, *, hides: bool
) -> dict[str, dict[str, Any]]:
    tables = tables_of(apps)
    total = sum(model._base_manager.using(alias).count() for model in tables.values())
    written, done = dict[str, dict[str, Any]](), 0
    for label, model in sorted(tables.items()):
        before = done
        with archive.part(rows_part(label)) as stream:
            for line in write_rows(model, alias, HIDDEN.get(label, {}) if hides else {}):
                stream.write(line)
                done += 1
                tell(_("Rows"), done, total)
        facts = {"columns": columns_of(model), "rows": done - before}
        written[label] = facts | {"last_id": last_id(connections[alias], model)}
    return written


def last_id(connection: Any, model: Any) -> int:
    """The highest number that a row of ``model`` was ever given; 0 where the database gives none.
    It is not given again, also when the row is gone."""
    table, column = model._meta.db_table, model._meta.pk.column
    query = "SELECT seq FROM sqlite_sequence WHERE name = %s", [table]
    if connection.vendor == "postgresql":
        sequence = "pg_sequence_last_value(pg_get_serial_sequence(%s, %s)::regclass)"
        query = f"SELECT {sequence}", [f'"{table}"', column]
    with connection.cursor() as cursor:
        cursor.execute(*query)
        found = cursor.fetchone()
    return int(found[0] or 0) if found else 0


def _find_hidden(alias: str) -> Iterator[str]:
    """The rows of which something stays out of a file without keys."""
    for label, columns in HIDDEN.items():
        for row in apps.get_model(label)._default_manager.using(alias).iterator():
            if any(
                hide(getattr(row, name)) != getattr(row, name) for name, hide in columns.items()
            ):
                yield f"{row._meta.verbose_name}: {row}"


def _write_files(archive: ArchiveWriter, tell: Tell) -> list[str]:
    files, missed = list(belongings.list_files()), []
    for number, (name, path) in enumerate(files, start=1):
        tell(_("Files"), number, len(files))
        try:
            stream = path.open("rb")
        except OSError:  # deleted meanwhile
            missed.append(name)
            continue
        with stream:
            if not is_part_name(name) or not name.isprintable():
                missed.append(name)
                continue
            with archive.part(name, os.fstat(stream.fileno()).st_mtime) as part:
                shutil.copyfileobj(stream, part, 2**18)
    return missed
