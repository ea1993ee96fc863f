"""What a start does with a database that cannot be written, reached, or read; and what a damaged
one says later."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper as Postgres
from django.db.backends.sqlite3.base import DatabaseWrapper as Sqlite

from agent.runtime import database
from frostproject.configuration.env import parse_database_url, sqlite_settings
from tests.agent.databases import in_place


@pytest.fixture(autouse=True)
def _reachable(django_db_setup: None, django_db_blocker: Any, settings: Any) -> Iterator[None]:
    settings.LANGUAGE_CODE = "en"
    with django_db_blocker.unblock():
        yield


@contextlib.contextmanager
def another(given: dict[str, object]) -> Iterator[BaseDatabaseWrapper]:
    """Another database in the place of the usual one."""
    kind = Sqlite if "sqlite" in str(given["ENGINE"]) else Postgres
    with in_place(other := kind({**connections["default"].settings_dict, **given}, "default")):
        yield other
        other.close()


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def refused() -> str:
    with pytest.raises(database.DatabaseRefused) as error:
        database.migrate_embedded_database()
    return str(error.value)


def test_a_full_disk_at_the_first_start_is_one_sentence_and_leaves_no_marker(tmp_path):
    with another(sqlite_settings(tmp_path / "db")):
        execute("PRAGMA max_page_count = 20")
        assert refused().startswith(
            f"There is no room left for the database {tmp_path / 'db'}. Make room"
        )
        assert not database.marker_path().exists()
        execute("PRAGMA max_page_count = 1000000")
        database.migrate_embedded_database()


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    with another(sqlite_settings(tmp_path / "db")):
        execute("PRAGMA query_only = 1")
        assert (
            "attempt to write a readonly database. Give it to the user that runs the server"
            in refused()
        )


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with another(sqlite_settings(tmp_path / "gone" / "db")):
        assert "cannot be written: unable to open database file. Give it" in refused()


def test_a_postgresql_that_does_not_answer_is_one_sentence():
    address = parse_database_url("DATABASE_URL", "postgres://frost:s3cret@127.0.0.1:1/frost")
    with another({**address, "OPTIONS": {}}):
        said = refused()
    assert said.startswith("The database cannot be used: ")
    assert said.endswith("Is it running, and is DATABASE_URL right?")
    assert "s3cret" not in said


def test_a_database_that_is_up_to_date_is_known_by_the_names_of_its_migrations(
    tmp_path, monkeypatch
):
    with another(sqlite_settings(tmp_path / "db")):
        database.migrate_embedded_database()
        with monkeypatch.context() as patched:
            patched.setattr(database, "MigrationExecutor", None)
            assert database.check_migrations()
        execute("DELETE FROM django_migrations WHERE name = '0032_persona_pictures'")
        assert not database.check_migrations()


def test_many_missing_columns_are_counted(tmp_path):
    with another(sqlite_settings(tmp_path / "db")):
        database.migrate_embedded_database()
        for column in (
            "notes",
            "error",
            "final_text",
            "model",
            "model_calls",
            "input_tokens",
            "output_tokens",
        ):
            execute(f"ALTER TABLE agent_run DROP COLUMN {column}")
        assert (
            "agent_run.error, agent_run.final_text, agent_run.input_tokens, agent_run.model, "
            "agent_run.model_calls" in refused()
        )
        assert "and 2 more." in refused()


def test_damage_is_told_once_a_minute_whoever_meets_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with another(sqlite_settings(file := tmp_path / "db")) as other:
        database.migrate_embedded_database()
        with connection.cursor() as cursor:
            cursor.execute("SELECT rootpage FROM sqlite_master WHERE name = 'agent_run'")
            begin = (cursor.fetchone()[0] - 1) * 4096
        execute("PRAGMA journal_mode = DELETE")
        other.close()
        content = file.read_bytes()
        file.write_bytes(content[:begin] + b"\xa5" * 4096 + content[begin + 4096 :])
        for _ in range(3):
            with pytest.raises(DatabaseError):
                execute("SELECT * FROM agent_run")
    assert [record.name for record in caplog.records] == ["frostproject.start.database_damage"]
