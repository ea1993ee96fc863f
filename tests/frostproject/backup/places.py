"""Installations that a test backs up and restores into: a data folder and a database each."""

import contextlib
import gzip
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from frostproject.backup.archive import Archive
from frostproject.backup.rows import columns_of, tables_of
from frostproject.backup.saving import save
from tests.agent.databases import in_place
from tests.databases import story
from tests.databases.test_upgrades import database_at

PASSPHRASE = "correct horse battery"
MANIFEST = "manifest.json"
PICTURE = b"\x89PNG of a fox"


def quiet(_label: str, _done: int, _total: int) -> None:
    """Hears how far it is, and says nothing."""


@contextlib.contextmanager
def at(folder: Path, url: str = "") -> Iterator[Path]:
    """Be the installation whose data folder is ``folder``, on SQLite unless there is a ``url``."""
    folder.mkdir(exist_ok=True)
    named = {name: folder / name.lower().split("_")[0] for name in ("MEDIA_DIR", "RECEIVED_DIR")}
    places = {"DATA_DIR": folder, "PLUGINS_DIR": folder / "plugins", "BACKUP_DIR": folder / "daily"}
    key = folder / "secret_key"
    if not key.exists():
        key.write_text(f"the key of {folder.name}".ljust(40, "x"))
        (folder / "http_api_token").write_text(f"token-of-{folder.name}")
    database = database_at(url or folder / "frostagent.sqlite3")
    own = override_settings(**named, **places, SECRET_KEY=key.read_text())
    try:
        with own, in_place(database):
            yield folder
    finally:
        database.close()


def live_there(folder: Path) -> None:
    """Have the installation a little of everything."""
    call_command("migrate", verbosity=0)
    story.tell()
    for name, content in (
        ("media/stickers/fox.png", PICTURE),
        ("received/ab/abcd", PICTURE * 9),
        ("plugins/dice/plugin.py", b"ROLL = 4\n"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_700_000_000, 1_700_000_000))


def all_rows() -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, as Django reads it."""
    return {
        label: [
            tuple(bytes(one) if isinstance(one, memoryview) else one for one in row)
            for row in model._base_manager.order_by("pk").values_list(*columns_of(model))
        ]
        for label, model in tables_of(apps).items()
    }


def all_files(folder: Path) -> dict[str, tuple[bytes, float]]:
    """What is in the folders of media, copies and plugins, and since when."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime)
        for name in ("media", "received", "plugins")
        for path in (folder / name).rglob("*")
        if path.is_file()
    }


def made(folder: Path, file: Path, passphrase: str = "", url: str = "") -> Path:
    """A backup of a new installation in ``folder``."""
    with at(folder, url):
        live_there(folder)
        save(file, passphrase, quiet)
    return file


def describe_place(folder: Path) -> tuple[list[str], list[str]]:
    """The files of the installation one is at, without what SQLite makes to be asked, and its
    tables."""
    tables = connection.introspection.table_names()
    files = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return sorted(one for one in files if not one.startswith("frostagent.sqlite3")), tables


# --- Files that are not as they were written --------------------------------------------

Change = Callable[[dict[str, bytes], dict[str, Any]], object]


def change(file: Path, other: Path, *changes: Change) -> Path:
    """Write to ``other`` what ``changes`` make of the parts of ``file`` and its manifest."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts.pop(MANIFEST))
    for one in changes:
        one(parts, manifest)
    with zipfile.ZipFile(other, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        archive.writestr(MANIFEST, json.dumps(manifest))
    return other


def put(parts: dict[str, bytes], manifest: dict[str, Any], name: str, data: bytes) -> None:
    """Give a part other content, and the manifest its size and sum."""
    parts[name] = gzip.compress(data) if name.endswith(".gz") else data
    manifest["parts"][name] = [len(data), hashlib.sha256(data).hexdigest(), 0]


def read(file: Path, passphrase: str = "") -> dict[str, bytes]:
    """All parts of a backup."""
    with Archive(file, passphrase) as archive:
        found = {}
        for name in archive.parts:
            with archive.part(name) as part:
                found[name] = part.read()
        return found
