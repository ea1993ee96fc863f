"""Files and folders from which nothing is taken: one sentence, and nothing is written."""

import io
import os
import sqlite3
import stat
import zipfile
import zlib
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from agent.models import Persona
from frostproject.imports import sources
from tests.frostproject.imports.samples import CARD, _chunk, card_png, write_astrbot, write_database

pytestmark = pytest.mark.django_db


def refused(path: Path) -> str:
    """What the command says, which is one sentence."""
    with translation.override("en"), pytest.raises(CommandError) as caught:
        call_command("import", str(path), "--yes", stdout=io.StringIO())
    assert "\n" not in str(caught.value)
    assert not Persona.objects.filter(is_default=False).exists()
    return str(caught.value)


def own(picture: str) -> bytes:
    """A persona as this program writes it."""
    return b'{"frostagent_persona": 1, "name": "a", "picture": ' + picture.encode() + b"}"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 3_000 + b"1" + b"}" * 3_000, "nested too deeply"),
        (b'{"system_prompt": NaN}', "no number"),
        (b'{"system_prompt": "\xff"}', "not UTF-8"),
        (b'{"system_prompt": ', "not JSON"),
        (b'{"x": 1}', "nothing that is known"),
        (b"", "nothing that is known"),
        (b'{"frostagent_persona": 1, "name": "a", "examples": [1]}', "“examples”"),
        (b"SQLite format 3\0" + b"\1" * 500, "as a database"),
        (b"PK\x03\x04" + b"\1" * 500, "no ZIP file"),
        (card_png(), "without a character card"),
        (b"\x89PNG\r\n\x1a\n" + _chunk(b"tEXt", b"chara\0???"), "damaged"),
        (card_png(chara=CARD, width=60_000, height=60_000), "too many pixels"),
        (card_png(chara=CARD, width=2**31 - 1, height=2**31 - 1), "file.json: the picture"),
        (card_png(chara=CARD)[:-28], "cannot be decoded"),
        (own('"data:image/svg+xml;base64,PHN2Zz4="'), "cannot be decoded"),
        (own('"data:image/png;base64,x"'), "“picture”"),
        (own('"file:///etc/passwd"'), "“picture”"),
        (own("[1]"), "“picture”"),
    ],
)
def test_file_is_refused_with_a_sentence(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_bytes(data)
    assert words in refused(tmp_path / "file.json")


def test_packed_text_of_a_picture_is_not_unpacked(tmp_path: Path) -> None:
    bomb = _chunk(b"zTXt", b"chara\0\0" + zlib.compress(b"A" * (64 << 20)))
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bomb)
    assert "without a character card" in refused(tmp_path / "bomb.png")


def test_large_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(sources.MOST_BYTES + 1)
    assert "larger than 16 MiB" in refused(tmp_path / "large.json")


def test_large_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    for number in range(5):
        with (tmp_path / "config" / f"abconf_{number}.json").open("wb") as file:
            file.truncate(sources.MOST_BYTES)
    assert "larger than 64 MiB" in refused(tmp_path)


def test_large_database_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "data_v4.db").open("wb") as file:
        file.write(b"SQLite format 3\0")
        file.truncate(sources.MOST_DATABASE + 1)
    assert "larger than 1024 MiB" in refused(tmp_path / "data_v4.db")


def test_zip_that_unpacks_to_more_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cmd_config.json", b" " * (sources.MOST_BYTES + 1))
    assert "larger than 16 MiB" in refused(tmp_path / "bomb.zip")


@pytest.mark.parametrize("name", ["../cmd_config.json", "/cmd_config.json", "a/../../b.json"])
def test_zip_that_leads_out_of_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "out.zip", "w") as archive:
        archive.writestr(name, b"{}")
    assert "leads out" in refused(tmp_path / "out.zip")


def test_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("cmd_config.json")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(entry, b"/etc/passwd")
    assert "is no file" in refused(tmp_path / "link.zip")


def test_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = write_astrbot(tmp_path / "data")
    (folder / "cmd_config.json").unlink()
    (tmp_path / "other.json").write_text("{}")
    (folder / "cmd_config.json").symlink_to(tmp_path / "other.json")
    assert "leads out of the folder" in refused(folder)


def test_pipe_is_refused_alone_and_in_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cmd_config.json")
    assert "neither a file nor a folder" in refused(tmp_path / "cmd_config.json")
    assert "neither a file nor a folder" in refused(tmp_path)


def test_device_is_refused(tmp_path: Path) -> None:
    assert "neither a file nor a folder" in refused(Path("/dev/zero"))


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "gone.json")


def test_doctored_database_does_not_run_for_ever(tmp_path: Path) -> None:
    endless = "with recursive n(x) as (select 1 union all select x+1 from n) select x from n"
    file = write_database(
        tmp_path / "data_v4.db",
        f"create view personas as {endless}; create table bots(name); insert into bots values(1)",
    )
    with translation.override("en"):
        call_command("import", str(file), stdout=(out := io.StringIO()))
    assert "persona:" not in out.getvalue()


def test_locked_database_is_read_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    folder = write_astrbot(tmp_path / "data")
    before = sorted(folder.iterdir())
    database = sqlite3.connect(folder / "data_v4.db", isolation_level=None)
    database.execute("begin exclusive")
    with translation.override("en"):
        call_command("import", str(folder), stdout=(out := io.StringIO()))
    database.close()
    assert "persona: 霜降" in out.getvalue()
    assert sorted(folder.iterdir()) == before
