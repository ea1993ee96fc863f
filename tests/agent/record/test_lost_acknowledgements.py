"""A COMMIT without an acknowledgement on a real PostgreSQL: looked up, and never taken for what it
was not."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper as Postgres

from agent.models import CommitMark
from agent.record.ground import commit as module
from agent.record.ground.commit import GroupCommit
from agent.record.ground.commit_marks import CommitMarker
from frostproject.configuration.env import parse_database_url
from tests.environment import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


class Unacknowledged(Postgres):
    """Commits, and once it is told to says that the connection was lost over it."""

    is_told = True

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # which the stubs do not know
        if not self.is_told:
            Unacknowledged.is_told = True
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
        commit._socket.dial_directly()
        with connection.schema_editor() as editor:
            editor.create_model(CommitMark)
            editor.execute("CREATE TABLE told (word text)")
        commit._marks.prepare()
        Unacknowledged.is_told = False

    commit._thread.submit(move_in).result()
    yield commit
    await commit.close()


async def test_what_was_committed_is_not_repeated_because_nobody_said_so(commit):
    assert await asyncio.wait_for(commit.submit_batched(put_down, "abc"), PATIENCE) == 3
    assert await commit.submit_batched(told, None) == ["abc"]


async def test_a_connection_that_is_lost_again_while_that_is_asked_is_made_anew(
    commit, monkeypatch
):
    cuts = [1]

    took_effect = CommitMarker.took_effect

    def cut_off(marks: CommitMarker, number: int) -> bool:
        if cuts:
            cuts.pop()
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return took_effect(marks, number)

    monkeypatch.setattr(CommitMarker, "took_effect", cut_off)
    assert await asyncio.wait_for(commit.submit_batched(put_down, "abc"), PATIENCE) == 3
    assert await commit.submit_batched(told, None) == ["abc"]


async def test_a_server_that_says_nothing_is_cut_off_and_asked_again(commit, monkeypatch):
    monkeypatch.setattr(module, "STUCK_SECONDS", 1.0)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    tries = []

    def linger(words: Sequence[str]) -> list[int]:
        tries.append(words)
        if len(tries) == 1:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(600)")
        return put_down(words)

    assert await asyncio.wait_for(commit.submit_batched(linger, "abc"), PATIENCE) == 3
    assert (await commit.submit_batched(told, None), len(tries)) == (["abc"], 2)
