"""What became of a transaction whose COMMIT was never acknowledged: PostgreSQL is asked for the
mark that it left."""

import contextlib
from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection, connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper

from agent.models import CommitMark, ServerProcess
from agent.record.ground import commit_marks
from agent.record.ground.commit_marks import CommitMarker
from agent.record.waiting.recovery import record_heartbeat
from frostproject.configuration.env import parse_database_url
from tests.agent.databases import in_place, postgres

__all__ = ["postgres"]


@pytest.fixture
def marks(postgres) -> Iterator[CommitMarker]:
    with in_place(postgres):
        marks = CommitMarker()
        marks.prepare()
        yield marks
        ServerProcess.objects.all().delete()
        marks.remove()
        assert not CommitMark.objects.exists()


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    """The same database over another connection, which a transaction can be left open on."""
    other = DatabaseWrapper(connection.settings_dict, "default")
    with in_place(other):
        try:
            yield
        finally:
            other.close()


def write() -> None:
    record_heartbeat("me", alone=False)


def test_a_transaction_that_was_committed_took_effect(marks):
    with transaction.atomic():
        write()
        number = marks.write_mark()
    assert number
    assert marks.took_effect(number)


def test_one_that_was_rolled_back_did_not(marks):
    with transaction.atomic():
        write()
        number = marks.write_mark()
        transaction.set_rollback(True)
    assert not marks.took_effect(number)


def test_one_before_the_last_is_not_taken_for_it(marks):
    numbers = []
    for _ in range(2):
        with transaction.atomic():
            write()
            numbers.append(marks.write_mark())
    assert [marks.took_effect(number) for number in numbers] == [False, True]


def test_one_that_wrote_nothing_leaves_no_mark(marks):
    with transaction.atomic():
        assert marks.write_mark() == 0


def test_one_that_goes_on_is_waited_for(marks, monkeypatch):
    monkeypatch.setattr(commit_marks, "WAIT_MS", 100)
    with elsewhere(), transaction.atomic():
        write()
        number = marks.write_mark()
        usual = connections["default"]
        with elsewhere(), pytest.raises(DatabaseError):
            marks.took_effect(number)
        assert connections["default"] is usual
    assert marks.took_effect(number)


def test_one_whose_connection_was_cut_off_did_not(marks):
    with elsewhere(), contextlib.suppress(DatabaseError), transaction.atomic():
        write()
        number = marks.write_mark()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert not marks.took_effect(number)


def test_one_that_a_crash_has_taken_back_did_not_and_one_before_it_did(
    postgres_server, django_db_blocker
):
    with (
        django_db_blocker.unblock(),
        type(postgres_server)() as server,
    ):  # which nobody else is connected to
        settings = {
            **connections["default"].settings_dict,
            **parse_database_url("DATABASE_URL", server.new_database()),
        }
        with in_place(DatabaseWrapper({**settings, "OPTIONS": {}}, "default")):
            with connection.schema_editor() as editor:
                editor.create_model(CommitMark)
                editor.create_model(ServerProcess)
            marks, numbers = CommitMarker(), []
            marks.prepare()
            for is_lost in (False, True):
                with contextlib.suppress(DatabaseError), transaction.atomic():
                    ServerProcess.objects.create(
                        pk=f"{is_lost}", host="h", pid=1, last_seen_at="2026-01-01T00:00Z"
                    )
                    numbers.append(marks.write_mark())
                    if is_lost:
                        server.restart("immediate")
                if not is_lost:
                    assert marks.took_effect(numbers[0])
            connection.close()
            assert not marks.took_effect(numbers[1])
            assert marks.took_effect(numbers[0])
            connection.close()


def test_a_writer_that_is_new_clears_the_marks_of_those_long_gone(marks):
    CommitMark.objects.create(writer="gone", at="2026-01-01T00:00Z")
    other = CommitMarker()
    other.prepare()
    assert not CommitMark.objects.filter(writer="gone").exists()
    other.remove()
