"""What became of a transaction whose COMMIT was never acknowledged: PostgreSQL itself is asked."""

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from agent import acknowledgement
from agent.acknowledgement import took_effect, transaction_id
from agent.models import ServerProcess
from agent.store.recovery import Sighting, appear
from tests.agent.databases import in_place, postgres

__all__ = ["postgres"]


@pytest.fixture
def database(postgres) -> Iterator[None]:
    with in_place(postgres):
        yield


@contextlib.contextmanager
def somebody() -> Iterator[tuple[psycopg.Connection[Any], str]]:
    """Another connection with a transaction that goes on, and that one's number."""
    to = connection.settings_dict
    with contextlib.closing(psycopg.connect(host=to["HOST"], user=to["USER"], dbname=to["NAME"])) as other:
        ((number,),) = other.execute("SELECT pg_current_xact_id()::text").fetchall()
        yield other, number


def test_a_transaction_that_was_committed_took_effect(database):
    with somebody() as (other, number):
        other.commit()
        assert took_effect(number)


@pytest.mark.parametrize("end", ["rollback", "close"])
def test_one_that_was_rolled_back_or_cut_off_did_not(database, end):
    with somebody() as (other, number):
        getattr(other, end)()
        assert not took_effect(number)


def test_one_that_goes_on_is_waited_for_and_ended_when_it_takes_too_long(database, monkeypatch):
    monkeypatch.setattr(acknowledgement, "DECIDED_WITHIN", 0.1)
    with somebody() as (other, number):
        assert not took_effect(number)
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")


def test_one_that_the_database_does_not_know_did_not(database):
    with somebody() as (_, number):
        assert not took_effect(str(int(number) + 1_000_000))


def test_a_transaction_has_a_number_once_it_has_written(database):
    with transaction.atomic():
        assert transaction_id() == ""
        appear([Sighting("me", alone=False)])
        number = transaction_id()
    assert took_effect(number)
    ServerProcess.objects.all().delete()


@pytest.mark.django_db
def test_a_database_in_this_process_needs_none():
    appear([Sighting("me", alone=True)])
    assert transaction_id() == ""
