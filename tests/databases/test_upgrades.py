"""Databases of before, one of each release: brought to the newest tables, nothing is missing and
work goes on."""

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper as Postgres
from django.db.backends.sqlite3.base import DatabaseWrapper as Sqlite
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from agent.memory import note_visibility
from frostproject.configuration.env import parse_database_url, sqlite_settings
from tests.agent.databases import in_place
from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.databases.make import FOLDER, SUFFIX, kept, restore
from tests.databases.story import ACCOUNT, GROUP, IN_HAND, NOTE_WORD, PERSON, WAITING
from tests.environment import PROJECT
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.scripted_model import Request, ScriptedModel, says, text_of
from tools.text.search_terms import index_terms

#: Of the release in which operators had set up much.
SET_UP_IN = FOLDER / f"2026-11-23{SUFFIX}"
EACH = pytest.mark.parametrize("release", kept(), ids=lambda path: path.name.partition(".")[0])
#: Columns whose values the newest tables have in another form: keys of sessions are digests now.
REWRITTEN = {"django_session": {"session_key"}}
#: Tables whose rows another one holds now, whole: see ``HISTORY``.
MOVED = {"django_admin_log"}
Query = Callable[[str], list[tuple[Any, ...]]]
Rows = dict[str, tuple[list[str], "Counter[str]"]]
COLUMNS = {
    "sqlite": "SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'"
    " AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'agent_note_search%' ORDER BY 1, 2",
    "postgresql": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2",
}


# --- What is in a database ----------------------------------------------------------


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Query]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        yield lambda statement: connection.execute(statement).fetchall()


@contextlib.contextmanager
def dialled(url: str) -> Iterator[Query]:
    with psycopg.connect(url) as connection:
        yield lambda statement: connection.execute(statement.encode()).fetchall()


def rows(query: Query, vendor: str) -> Rows:
    """The columns of each table, and how often each row is there."""
    columns: dict[str, list[str]] = {}
    for table, column in query(COLUMNS[vendor]):
        columns.setdefault(table, []).append(column)
    kept = {
        table: [name for name in names if name not in REWRITTEN.get(table, ())]
        for table, names in columns.items()
    }
    return {table: (names, counted(query, table, names)) for table, names in kept.items()}


def empty(rows: Rows) -> list[str]:
    return [table for table, (_, there) in rows.items() if not there and table not in MOVED]


def counted(query: Query, table: str, columns: list[str]) -> "Counter[str]":
    named = ", ".join(f'"{column}"' for column in columns)
    return Counter(repr(row) for row in query(f'SELECT {named} FROM "{table}"'))


def lost(before: Rows, query: Query) -> dict[str, list[str]]:
    """The rows that are no longer there, or no longer what they were."""
    return {
        table: list(gone)
        for table, (columns, there) in before.items()
        if table not in MOVED and (gone := there - counted(query, table, columns))
    }


LOGGED = (
    "SELECT l.action_time, l.user_id, l.object_repr, l.change_message, t.app_label || '.' || t.model"
    " || ':' || l.object_id FROM django_admin_log l JOIN django_content_type t"
    " ON t.id = l.content_type_id ORDER BY l.id"
)
HISTORY = (
    "SELECT at, author_id, name, words, subject FROM tools_toolconfigchange WHERE id < 0"
    " ORDER BY id"
)


# --- The same rows in either database -------------------------------------------------


def database_at(url_or_path: str | Path) -> BaseDatabaseWrapper:
    """A connection of this thread's own, to be closed."""
    given = (
        sqlite_settings(url_or_path)
        if isinstance(url_or_path, Path)
        else parse_database_url("DATABASE_URL", url_or_path)
    )
    settings = {**connections["default"].settings_dict, **given}
    return (
        Sqlite(settings, "default")
        if isinstance(url_or_path, Path)
        else Postgres({**settings, "OPTIONS": {}}, "default")
    )


def load(release: Path, folder: Path, url: str) -> None:
    """Make of an empty PostgreSQL database what ``release`` would be there."""
    restore(release, folder / "kept.sqlite3")
    source, target = (
        Sqlite(
            {**connections["default"].settings_dict, **sqlite_settings(folder / "kept.sqlite3")},
            "kept",
        ),
        database_at(url),
    )
    connections["kept"] = source
    try:
        with in_place(target):
            models = models_of(source, target)
            with transaction.atomic():
                copy_rows(target, models)
    finally:
        source.close()
        target.close()
        del connections["kept"]


def models_of(source: BaseDatabaseWrapper, target: BaseDatabaseWrapper) -> list[Any]:
    """The models as they were when ``source`` was made, whose tables ``target`` now has."""
    executor = MigrationExecutor(target)
    # Those that a squashed one replaces are on record beside it, and are no nodes.
    applied = MigrationRecorder(source).applied_migrations().keys() & executor.loader.graph.node_map
    newest = [
        node
        for node in applied
        if not applied & {child.key for child in executor.loader.graph.node_map[node].children}
    ]
    state = executor.migrate(newest)
    return [
        model for model in state.apps.get_models(include_auto_created=True) if model._meta.managed
    ]


def copy_rows(target: BaseDatabaseWrapper, models: list[Any]) -> None:
    with target.cursor() as cursor:
        for statement in target.ops.sql_flush(
            no_style(), [model._meta.db_table for model in models], allow_cascade=True
        ):
            cursor.execute(statement)
        for model in models:
            model._base_manager.bulk_create(model._base_manager.using("kept"))
        for statement in target.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


# --- Nothing is missing ---------------------------------------------------------------


def searched() -> list[int]:
    """The notes that a search in the database in place finds."""
    return note_visibility.search_notes([], index_terms(NOTE_WORD), 10)


@EACH
def test_every_row_of_before_is_in_the_newest_tables_of_sqlite(
    release, tmp_path, django_db_setup, django_db_blocker
):
    restore(release, path := tmp_path / "frostagent.sqlite3")
    with (
        opened(path) as query,
        django_db_blocker.unblock(),
        in_place(database := database_at(path)),
    ):
        before = rows(query, "sqlite")
        assert empty(before) == []
        logged = query(LOGGED)
        call_command("migrate", verbosity=0)
        assert lost(before, query) == {}
        assert query(HISTORY) == logged
        assert logged
        assert len(searched()) == 1
        database.close()


@pytest.mark.slow
@EACH
def test_every_row_of_before_is_in_the_newest_tables_of_postgresql_and_work_goes_on(
    release, tmp_path, postgres_url, model_server, model, django_db_setup, django_db_blocker
):
    with django_db_blocker.unblock():
        load(release, tmp_path, postgres_url)
        with dialled(postgres_url) as query:
            before = rows(query, "postgresql")
            assert empty(before) == []
            logged = query(LOGGED)
        with in_place(database := database_at(postgres_url)):
            call_command("migrate", verbosity=0)
            assert len(searched()) == 1
            database.close()
    with dialled(postgres_url) as query:
        assert lost(before, query) == {}
        assert query(HISTORY) == logged
    with LiveServer(scripted_env(model_server) | {"DATABASE_URL": postgres_url}) as server:
        asyncio.run(goes_on(server, model))


# --- Work goes on ---------------------------------------------------------------------


def answer(request: Request) -> Any:
    asked = next(message for message in reversed(request.messages) if message["role"] == "user")
    return says("re " + text_of(asked).rpartition("\n")[2])


async def goes_on(server: LiveServer, model: ScriptedModel) -> None:
    """What nobody had answered is answered, once, and so is a new message."""
    model.answer_with(answer)
    newcomer = fresh_id()
    async with FakeOneBot(server.ws_url, ACCOUNT, token=TOKEN) as bot:
        left = [await bot.next_action() for _ in range(2)]
        assert sorted(spoken(action).strip() for action in left) == [
            f"re {IN_HAND}",
            f"re {WAITING}",
        ]
        assert {
            str(action["params"].get("group_id") or action["params"]["user_id"]) for action in left
        } == {PERSON, GROUP}
        await bot.say_private(newcomer, "hello")
        assert spoken(await bot.next_action()) == "re hello"


def server_on(release: Path, model_server: ScriptedModel) -> LiveServer:
    """One that is not started, on a data folder of before: it brings the tables up to date by
    itself."""
    server = LiveServer(scripted_env(model_server))
    restore(release, server.data_dir / "frostagent.sqlite3")
    return server


async def test_a_server_goes_on_with_a_database_of_before_on_sqlite(model_server, model):
    """Of bb83621, the oldest version that can be upgraded."""
    with server_on(kept()[0], model_server) as server:
        await goes_on(server, model)


# --- What operators had set up ----------------------------------------------------------

#: What each message came to in the database of 2026-11-23, account 10002: what was said where, by
#: whom, whether it is answered.
SET_UP = [
    (None, 20005, "one", True),
    (None, 20005, "two", True),
    (None, 20005, "three, where two a minute are answered", False),
    (None, 20008, "a stranger", False),
    (30005, 20005, "hello, cat", True),
    (30005, 20005, "!help", True),  # the prefix of the account's groups
    (30005, 20006, "blocked", False),
    (30005, 20007, "denied in groups", False),
    (30006, 20005, "in a blocked group", False),
    (30011, 20008, "neither listed", False),
    (30007, 20005, "silenced until 2100", False),
    (30008, 20005, "taken over until 2100", False),
    (30009, 20005, "a mention does not wake here", False),
    (30009, 20005, "frosty does", True),
    (30010, 20005, "silenced", False),
]


async def test_work_goes_on_and_what_operators_had_set_up_still_counts(model_server, model):
    """Of the release c3308c6: who is answered, limits of an account and a chat, silences, a
    persona, a take-over."""
    with server_on(SET_UP_IN, model_server) as server:
        await goes_on(server, model)
        async with FakeOneBot(server.ws_url, 10002, token=TOKEN) as bot:
            for group, person, words, is_answered in SET_UP:
                told = (
                    await bot.say_group(group, person, words)
                    if group
                    else await bot.say_private(person, words)
                )
                row = await server.row(
                    "SELECT state, reason FROM agent_message WHERE message_id = ? "
                    "AND direction = 'in' AND state NOT IN ('waiting', 'running')",
                    str(told["message_id"]),
                )
                assert (row["state"] == "answered") == is_answered, (words, row)
        cats = [one for one in model.requests if "You are a cat." in text_of(one.messages[0])]
        assert [one.last_text.rpartition("\n")[2].strip() for one in cats] == ["hello, cat"]


# --- Keeping one ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_database_that_is_kept_has_a_row_in_every_table(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "tests.databases.make", str(tmp_path / "now")],
        cwd=PROJECT,
        check=True,
    )
    restore(tmp_path / f"now{SUFFIX}", tmp_path / "now.sqlite3")
    with opened(tmp_path / "now.sqlite3") as query:  # the tokens of days are in the sums
        assert empty(rows(query, "sqlite")) == ["agent_spending"]
