"""Files that are no whole backup of this version are refused before anything is written, and a
backup that cannot be finished leaves nothing."""

import gzip
import json
import os
import resource
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from frostproject.backup.refused import BackupError
from frostproject.backup.saving import save
from tests.frostproject.backup.places import (
    MANIFEST,
    PASSPHRASE,
    at,
    change,
    describe_place,
    live_there,
    made,
    put,
    quiet,
)

ROWS = "rows/agent.message.jsonl.gz"
GIB = 2**30
Parts = dict[str, bytes]
Manifest = dict[str, Any]


@pytest.fixture(autouse=True)
def _unblocked(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), translation.override("en"):
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: Any, django_db_setup: None, django_db_blocker: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("whole")
    with django_db_blocker.unblock():
        return made(folder / "old", folder / "a.zip")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: Any, django_db_setup: None, django_db_blocker: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("sealed")
    with django_db_blocker.unblock():
        return made(folder / "old", folder / "a.zip", PASSPHRASE)


def refuses(file: Path, folder: Path, words: str, passphrase: str = "") -> None:
    """``restore`` and ``backup --check`` refuse ``file`` in these words, and write nothing."""
    word = folder.parent / "word"
    word.write_text(passphrase or "none")
    given = [f"--passphrase-file={word}"] if passphrase else []
    with at(folder):
        before = describe_place(folder)
        for command in (("restore", str(file)), ("backup", "--check", str(file))):
            with pytest.raises(CommandError, match=words):
                call_command(*command, *given)
        assert describe_place(folder) == before


# --- Cut, foreign, huge -------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_is_refused(kept, whole, tmp_path):
    data = whole.read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: int(len(data) * kept)])
    refuses(tmp_path / "cut.zip", tmp_path / "new", "no whole backup")


def test_a_foreign_file_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as archive:
        archive.writestr("holiday.jpg", b"sun")
    refuses(tmp_path / "foreign.zip", tmp_path / "new", "no backup of")
    refuses(tmp_path, tmp_path / "new", "cannot be read")
    refuses(tmp_path / "none.zip", tmp_path / "new", "cannot be read")


@pytest.mark.parametrize("ending", [b"", b"PK\5\6" + bytes(8) + b"\xff\xff\xff\x7f" * 2 + bytes(2)])
def test_a_file_of_4_gib_is_refused_at_once_and_in_little_memory(ending, tmp_path):
    with (tmp_path / "huge.zip").open("wb") as file:
        file.truncate(4 * GIB)
        file.seek(0, os.SEEK_END)
        file.write(ending)
    tracemalloc.start()
    refuses(tmp_path / "huge.zip", tmp_path / "new", "no whole backup")
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()


def test_a_part_that_unpacks_to_more_than_it_says_is_refused_in_little_memory(whole, tmp_path):
    def swell(parts: Parts, manifest: Manifest) -> None:
        parts[ROWS] = gzip.compress(bytes(300 * 2**20), 1)

    change(whole, tmp_path / "bomb.zip", swell)
    tracemalloc.start()
    refuses(tmp_path / "bomb.zip", tmp_path / "new", "no whole backup")
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()


# --- Doctored ----------------------------------------------------------------------------


def other_rows(parts: Parts, manifest: Manifest) -> None:
    """Another content of the same length."""
    data = bytearray(gzip.decompress(parts[ROWS]))
    data[20] ^= 1
    parts[ROWS] = gzip.compress(bytes(data))


def fewer_rows(parts: Parts, manifest: Manifest) -> None:
    put(parts, manifest, ROWS, gzip.decompress(parts[ROWS]).partition(b"\n")[0] + b"\n")


def no_row(parts: Parts, manifest: Manifest) -> None:
    count = manifest["tables"]["agent.message"]["rows"]
    put(parts, manifest, ROWS, b'["1"]\n' * count)


def no_time(parts: Parts, manifest: Manifest) -> None:
    table = manifest["tables"]["agent.message"]
    row: list[str | None] = [None] * len(table["columns"])
    row[table["columns"].index("created_at")] = "noon"
    put(parts, manifest, ROWS, json.dumps(row).encode() * table["rows"] + b"\n")


def way_out(parts: Parts, manifest: Manifest) -> None:
    put(parts, manifest, "media/../../../tmp/evil", b"x")


def absolute(parts: Parts, manifest: Manifest) -> None:
    put(parts, manifest, "/tmp/evil", b"x")


def other_folder(parts: Parts, manifest: Manifest) -> None:
    put(parts, manifest, "static/evil.js", b"x")


def unnamed(parts: Parts, manifest: Manifest) -> None:
    parts["media/more"] = b"x"


def other_table(parts: Parts, manifest: Manifest) -> None:
    manifest["tables"]["agent.evil"] = {"columns": ["id"], "rows": 0, "last_id": 0}
    put(parts, manifest, "rows/agent.evil.jsonl.gz", b"")


def other_column(parts: Parts, manifest: Manifest) -> None:
    manifest["tables"]["agent.message"]["columns"][0] = "id) --"


def other_key(parts: Parts, manifest: Manifest) -> None:
    said = {"environment": {}, "files": {"../evil": "x"}}
    put(parts, manifest, "settings.json", json.dumps(said).encode())


def no_migrations(parts: Parts, manifest: Manifest) -> None:
    manifest["migrations"] = ["agent.0021_daily_backup"]


def no_numbers(parts: Parts, manifest: Manifest) -> None:
    manifest["parts"][ROWS][0] = -1


DOCTORED = (
    *(other_rows, fewer_rows, no_row, no_time, way_out, absolute, other_folder, unnamed),
    *(other_table, other_column, other_key, no_migrations, no_numbers),
)


@pytest.mark.parametrize("doctor", DOCTORED, ids=lambda doctor: doctor.__name__)
def test_a_file_that_was_changed_is_refused(doctor, whole, tmp_path):
    change(whole, tmp_path / "changed.zip", doctor)
    refuses(tmp_path / "changed.zip", tmp_path / "new", "no whole backup")


def test_rows_that_only_the_database_refuses_leave_it_empty(whole, tmp_path):
    def dangle(parts: Parts, manifest: Manifest) -> None:
        columns = manifest["tables"]["agent.message"]["columns"]
        lines = [json.loads(line) for line in gzip.decompress(parts[ROWS]).splitlines()]
        for line in lines:
            line[columns.index("session_id")] = 4711
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        put(parts, manifest, ROWS, data)

    change(whole, tmp_path / "dangling.zip", dangle)
    with at(tmp_path / "new"):
        before = describe_place(tmp_path / "new")
        with pytest.raises(CommandError, match="Nothing was restored"):
            call_command("restore", str(tmp_path / "dangling.zip"))
        assert describe_place(tmp_path / "new") == before


# --- Newer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "newer", [{"format": 2, "parts": 0}, {"version": "99.0"}, {"migrations": ["agent.0999_new"]}]
)
def test_a_backup_of_a_newer_version_is_refused(newer, whole, tmp_path):
    change(whole, tmp_path / "newer.zip", lambda _parts, manifest: manifest.update(newer))
    refuses(tmp_path / "newer.zip", tmp_path / "new", "update this first")


# --- Sealed ------------------------------------------------------------------------------


def test_a_sealed_backup_wants_its_passphrase(sealed, tmp_path):
    refuses(sealed, tmp_path / "new", "takes its passphrase")
    refuses(sealed, tmp_path / "new", "not that of", "wrong")
    with at(tmp_path / "new"):
        (tmp_path / "word").write_text(PASSPHRASE)
        call_command("backup", "--check", str(sealed), f"--passphrase-file={tmp_path / 'word'}")


def swapped(parts: Parts, manifest: Manifest) -> None:
    one, other = "media/stickers/fox.png", "plugins/dice/plugin.py"
    parts[one], parts[other] = parts[other], parts[one]


def shortened(parts: Parts, manifest: Manifest) -> None:
    parts["received/ab/abcd"] = parts["received/ab/abcd"][:-1]


def renamed(parts: Parts, manifest: Manifest) -> None:
    manifest["version"] = "0.0.9"


@pytest.mark.parametrize("doctor", [swapped, shortened, renamed], ids=lambda one: one.__name__)
def test_a_sealed_backup_that_was_changed_is_refused(doctor, sealed, tmp_path):
    change(sealed, tmp_path / "changed.zip", doctor)
    words = "no whole backup|not that of"
    refuses(tmp_path / "changed.zip", tmp_path / "new", words, PASSPHRASE)


def test_what_was_said_cannot_be_read_in_a_sealed_backup(sealed):
    with zipfile.ZipFile(sealed) as archive:
        assert json.loads(archive.read(MANIFEST))["tables"]["agent.message"]["rows"] > 2
        with pytest.raises(gzip.BadGzipFile):
            gzip.decompress(archive.read(ROWS))
        assert b"fox" not in b"".join(map(archive.read, archive.namelist()[:-2]))


# --- While it is made ----------------------------------------------------------------------


def test_a_file_that_is_there_is_never_overwritten(tmp_path):
    file = tmp_path / "a.zip"
    file.write_text("holiday")
    with pytest.raises(BackupError, match="not overwritten"):
        made(tmp_path / "old", file)
    assert file.read_text() == "holiday"


@pytest.mark.parametrize("room", [30_000, 1_200_000])
def test_a_backup_that_finds_no_room_leaves_nothing(room, tmp_path):
    """The limit meets the copy of the database first, and then the file."""
    target = tmp_path / "backups"
    with at(tmp_path / "old"):
        live_there(tmp_path / "old")
        (tmp_path / "old" / "received" / "film").write_bytes(os.urandom(2_000_000))
        most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, most[1]))
        try:
            with pytest.raises(BackupError, match=str(target)):
                save(target / "a.zip", "", quiet)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert list(target.iterdir()) == []
