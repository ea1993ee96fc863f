"""A start on a database that is damaged, gone, older or newer than the program ends with one
sentence that says what to do."""

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests import zygote
from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.e2e.test_first_start import BOTH, start
from tests.environment import clean_environment
from tests.fake_onebot import FakeOneBot
from tests.live_server import LiveServer

DAMAGES = {
    "no first page": lambda file: overwrite(file, 0, 4096),
    "twenty pages": lambda file: overwrite(file, 4096, 20 * 4096),
    "another file": lambda file: file.write_text("this was a database" * 1000),
}
LOSSES: dict[str, Callable[[Path], object]] = {
    "emptied": lambda file: file.write_bytes(b""),
    "missing": lambda file: file.unlink(),
    "without tables": lambda file: without_tables(file),
}


def manage(folder: Path, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    fixed = {
        "FROST_DATA_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "frostproject.settings",
        "LANGUAGE_CODE": "en",
    }
    command = [sys.executable, "manage.py", *arguments]
    return zygote.run(command, clean_environment(**(fixed | env)))


def change(database: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def overwrite(file: Path, begin: int, length: int) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:begin] + b"\xa5" * length + content[begin + length :])


def without_tables(file: Path) -> None:
    """A database in which nothing was ever made."""
    file.unlink()
    change(file, "PRAGMA journal_mode=WAL")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that somebody has worked with."""
    folder = tmp_path_factory.mktemp("used") / "data"
    assert manage(folder, "chat").returncode == 0
    change(folder / "frostagent.sqlite3", "PRAGMA journal_mode=DELETE")
    return folder


@pytest.fixture
def folder(used: Path, tmp_path: Path) -> Path:
    return shutil.copytree(used, tmp_path / "data")


@pytest.fixture
def database(folder: Path) -> Path:
    return folder / "frostagent.sqlite3"


def refusal(program: str, folder: Path, **env: str) -> str:
    """The one line that a start ends with."""
    status, errors = start(program, FROST_DATA_DIR=str(folder), LANGUAGE_CODE="en", **env)
    assert status not in (0, None)
    assert "Traceback" not in errors
    (line,) = errors.strip().splitlines()
    return line


def doubt(folder: Path, **env: str) -> str:
    """What ``doctor`` says of the database."""
    said = manage(folder, "doctor", **env)
    assert said.returncode == 1
    (failed,) = [
        line for line in said.stdout.splitlines() if line.startswith("FAIL") and "atabase" in line
    ]
    return failed


# --- Other than the program needs it ----------------------------------------------------


@BOTH
def test_a_database_of_between_two_versions_is_refused_and_what_it_lacks_is_named(
    folder, database, program
):
    change(
        database, "DROP TABLE tools_pluginstatus", "ALTER TABLE tools_plugin DROP COLUMN decided"
    )
    line = refusal(program, folder)
    assert "lacks what the program needs: tools_plugin.decided, tools_pluginstatus." in line
    assert "restore a backup" in line
    assert "tools_plugin.decided, tools_pluginstatus" in doubt(folder)


def test_a_search_that_no_longer_follows_the_notes_is_refused(folder, database):
    change(database, "DROP TRIGGER agent_note_search_update")
    assert "agent_note_search_update" in refusal("runserver", folder)


def test_a_database_that_cannot_be_migrated_is_refused(folder, database):
    change(
        database,
        "DROP TABLE agent_note",
        "DELETE FROM django_migrations WHERE app = 'agent' AND name >= '0003' "
        "OR app = 'onebot' AND name >= '0008'",  # which came after one of them
    )
    assert (
        "no such table: main.agent_note. It was made by a state of the program between"
        in refusal("runserver", folder)
    )


def test_a_database_of_a_newer_version_is_refused(folder, database):
    change(
        database,
        "INSERT INTO django_migrations (app, name, applied) VALUES ('agent', '0999_later', "
        "'2026-01-01')",
    )
    assert (
        "made by a newer version of the program, which knows agent.0999_later. Update"
        in refusal("daphne", folder)
    )
    assert "agent.0999_later" in doubt(folder)


@BOTH
def test_pending_migrations_on_postgresql_are_named_with_the_command_to_run(
    tmp_path, postgres_url, program
):
    line = refusal(program, tmp_path, DATABASE_URL=postgres_url)
    assert line.endswith("The database is older than the program. Run: python manage.py migrate")


def test_a_column_that_is_missing_on_postgresql_is_named(tmp_path, postgres_url):
    assert manage(tmp_path, "migrate", DATABASE_URL=postgres_url).returncode == 0
    with psycopg.connect(postgres_url) as connection:
        connection.execute("ALTER TABLE agent_run DROP COLUMN notes")
        connection.execute("DROP INDEX agent_note_search")
    assert "lacks what the program needs: agent_note_search, agent_run.notes." in refusal(
        "daphne", tmp_path, DATABASE_URL=postgres_url
    )


# --- Damaged ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_told_as_such_with_what_to_do(folder, database, kind):
    DAMAGES[kind](database)
    line = refusal("runserver", folder)
    assert f"The database file {database} is damaged" in line
    assert "restore the newest backup" in line


def test_doctor_and_chat_tell_of_a_damaged_file_too(folder, database):
    overwrite(database, 4096, 20 * 4096)
    assert "is damaged" in doubt(folder)
    assert manage(folder, "chat").stderr.count("is damaged") == 1


def test_doctor_finds_damage_that_a_start_does_not_meet(folder, database):
    with contextlib.closing(sqlite3.connect(database)) as connection:
        ((page,),) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'agent_step'"
        )
    overwrite(database, (page - 1) * 4096, 4096)
    assert f"The database file {database} is damaged" in doubt(folder)


async def test_damage_that_shows_while_running_is_told_in_the_log(folder, database, model_server):
    with contextlib.closing(sqlite3.connect(database)) as connection:
        ((page,),) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'agent_message'"
        )
    overwrite(database, (page - 1) * 4096, 4096)
    server = LiveServer(scripted_env(model_server) | {"LANGUAGE_CODE": "en"})
    shutil.copytree(folder, server.data_dir)
    with server:
        async with FakeOneBot(server.ws_url, fresh_id(), token=TOKEN) as bot:
            await bot.say_private(fresh_id(), "hello")
            log = await server.logged("sqlite3 recovered.sqlite3")
        assert f"The database file {server.data_dir / database.name} is damaged" in log


# --- Gone -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LOSSES)
def test_a_lost_database_is_not_taken_for_a_first_start(folder, database, kind):
    LOSSES[kind](database)
    line = refusal("runserver", folder)
    assert f"The database {database} is missing or empty, and there has been one." in line
    assert f"delete {database}.made" in line


def test_nothing_else_begins_anew_either(folder, database):
    database.unlink()
    assert "is missing or empty" in refusal("daphne", folder)
    assert "is missing or empty" in doubt(folder)
    chat = manage(folder, "chat")
    assert (chat.returncode, chat.stdout) == (1, "")
    assert "is missing or empty" in chat.stderr
    assert not database.exists()


def test_who_deletes_what_the_sentence_names_begins_anew(folder, database):
    database.unlink()
    (folder / "frostagent.sqlite3.made").unlink()
    assert manage(folder, "chat").returncode == 0
    assert (folder / "frostagent.sqlite3.made").exists()


def test_another_database_in_an_old_folder_is_a_first_start(folder, database):
    other = folder / "other.sqlite3"
    assert manage(folder, "chat", DATABASE_URL=f"sqlite:///{other}").returncode == 0
    assert other.stat().st_size > 0


@pytest.mark.parametrize("progress", [(), ("agent", "0001")])
def test_a_first_start_that_was_broken_off_is_gone_on_with(tmp_path, progress):
    (tmp_path / "frostagent.sqlite3").touch()
    if progress:
        assert manage(tmp_path, "migrate", *progress).returncode == 0
    assert manage(tmp_path, "chat").returncode == 0
