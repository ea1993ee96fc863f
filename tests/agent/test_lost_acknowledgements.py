"""A COMMIT without an acknowledgement on a real PostgreSQL: looked up, and never taken for what it was not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper as Postgres
from django.db.backends.utils import CursorWrapper

from agent import commit as module
from agent.acknowledgement import took_effect, transaction_id
from agent.commit import GroupCommit
from frostproject.env import parse_database_url
from tests.agent.databases import in_place

pytestmark = pytest.mark.django_db(transaction=True)


class Unacknowledged(Postgres):
    """Commits, and once says that the connection was lost over it."""

    is_told = False

    def _commit(self) -> None:
        super()._commit()
        if not self.is_told:
            self.is_told = True
            raise OperationalError("server closed the connection unexpectedly")


def put_down(words: Sequence[str]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO told VALUES (%s)", [(word,) for word in words])
    return [len(word) for word in words]


def told(_asked: Sequence[None]) -> list[list[str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT word FROM told")
        return [[word for (word,) in cursor.fetchall()]]


@pytest.fixture
async def commit(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GroupCommit]:
    """Its thread has a PostgreSQL with one table to itself."""
    monkeypatch.setattr(module, "RETRY_PAUSES", (0.01,))
    usual = connections["default"].settings_dict
    commit = GroupCommit()

    def move_in() -> None:
        settings: dict[str, Any] = {**usual, **parse_database_url("DATABASE_URL", postgres_url)}
        connections["default"] = Unacknowledged({**settings, "OPTIONS": {}}, "default")
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE told (word text)")

    commit._thread.submit(move_in).result()
    yield commit
    await commit.close()


async def test_what_was_committed_is_not_repeated_because_nobody_said_so(commit):
    assert await asyncio.wait_for(commit.submit(put_down, "abc"), 10) == 3
    assert await commit.submit(told, None) == ["abc"]


async def test_a_connection_that_is_lost_again_while_that_is_asked_is_made_anew(commit, monkeypatch):
    cuts = [1]

    def cut_off(number: str) -> bool:
        if cuts:
            cuts.pop()
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return took_effect(number)

    monkeypatch.setattr(module, "took_effect", cut_off)
    assert await asyncio.wait_for(commit.submit(put_down, "abc"), 10) == 3
    assert await commit.submit(told, None) == ["abc"]


@contextlib.contextmanager
def connected(url: str) -> Iterator[CursorWrapper]:
    settings = {**connections["default"].settings_dict, **parse_database_url("DATABASE_URL", url), "OPTIONS": {}}
    with in_place(Postgres(settings, "default")):
        try:
            with connection.cursor() as cursor:
                yield cursor
        finally:
            connection.close()


def test_a_transaction_that_a_crash_has_taken_back_is_not_taken_for_another_one_of_its_number(postgres_server):
    with type(postgres_server)() as server:  # which nobody else is connected to
        url = server.new_database()
        with connected(url) as cursor:
            cursor.execute("CREATE TABLE told (word text)")
            cursor.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")  # so that the crash surely loses what was not committed
            cursor.execute("SELECT pg_reload_conf()")
            cursor.execute("CHECKPOINT")
        with contextlib.suppress(OperationalError), connected(url), transaction.atomic():
            put_down(["lost"])
            number = transaction_id()
            server.restart("immediate")
        with connected(url) as cursor:
            put_down(["another's"])
            cursor.execute("SELECT xmin::text::bigint FROM told")
            assert cursor.fetchall() == [(number.xid,)]
            assert not took_effect(number)


def test_what_was_committed_before_a_restart_stays_so(postgres_server):
    with type(postgres_server)() as server:
        url = server.new_database()
        for mode in ("fast", "immediate"):
            with connected(url) as cursor, transaction.atomic():
                cursor.execute("CREATE TABLE IF NOT EXISTS told (word text)")
                put_down(["kept"])
                number = transaction_id()
            server.restart(mode)
            with connected(url):
                assert took_effect(number)
