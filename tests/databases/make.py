"""``python -m tests.databases.make NAME`` keeps a database as this code makes it, with rows in
every table.

To be run at each release, and never again for the same one: the suite brings what is
kept here to the newest tables and looks whether everything is still there.
"""

import gzip
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import django
from django.core.management import call_command

from tests.environment import clean_environment

FOLDER = Path(__file__).parent
SUFFIX = ".sqlite3.gz"


def kept() -> list[Path]:
    """Every database that is kept, by the name of its release."""
    return sorted(FOLDER.glob(f"*{SUFFIX}"))


def restore(kept: Path, path: Path) -> None:
    """Put the database at ``path``, as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(kept) as packed, path.open("wb") as file:
        shutil.copyfileobj(packed, file)


def make(folder: Path, kept: Path) -> None:
    """Make a database in ``folder`` and keep it. For a process of its own."""
    os.environ.update(
        clean_environment(
            FROST_DATA_DIR=str(folder), DJANGO_SETTINGS_MODULE="frostproject.settings"
        )
    )
    django.setup()
    from tests.databases.story import tell

    call_command("migrate", verbosity=0)
    tell()
    database = folder / "frostagent.sqlite3"
    django.db.connections.close_all()
    with sqlite3.connect(database, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("VACUUM")
    connection.close()
    with database.open("rb") as file, gzip.GzipFile(kept, "xb", mtime=0) as packed:
        shutil.copyfileobj(file, packed)


def main(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), FOLDER / f"{name}{SUFFIX}")


if __name__ == "__main__":
    main(*sys.argv[1:])
