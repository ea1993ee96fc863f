"""A PostgreSQL database in the place of the usual one, for tests that are not async."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper

from frostproject.configuration.env import parse_database_url


@pytest.fixture(scope="module")
def postgres(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any
) -> Iterator[DatabaseWrapper]:
    """A migrated database that the tests of a module share; see :func:`inside`."""
    server = request.getfixturevalue("postgres_server")
    with django_db_blocker.unblock():
        url = server.new_database(migrated(server))
        database = _database_at(url)
        yield database
        database.close()
    server.drop_database(url)


@functools.cache
def migrated(server: Any) -> str:
    """The address of a migrated database of ``server`` that others are copied from. Made where the
    database is allowed."""
    url: str = server.new_database()
    database = _database_at(url)
    with in_place(database):
        call_command("migrate", verbosity=0)
    database.close()
    return url


def _database_at(url: str) -> DatabaseWrapper:
    usual, own = connections["default"].settings_dict, parse_database_url("DATABASE_URL", url)
    return DatabaseWrapper({**usual, **own, "OPTIONS": {}}, "default")


@contextlib.contextmanager
def inside(database: DatabaseWrapper) -> Iterator[None]:
    """Let everything in this thread use ``database``; what it wrote is taken back at the end."""
    with in_place(database), transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextlib.contextmanager
def in_place(database: BaseDatabaseWrapper) -> Iterator[None]:
    """Let everything in this thread use ``database``."""
    usual = connections["default"]
    connections["default"] = database
    try:
        yield
    finally:
        connections["default"] = usual
        ContentType.objects.clear_cache()
