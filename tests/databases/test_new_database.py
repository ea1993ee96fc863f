"""A new database, whose tables are made at once, is what all migrations make of an empty one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, models
from django.db.migrations.executor import MigrationExecutor
from django.test import modify_settings
from django.utils import translation

from frostproject.start import new_database
from tests.agent.databases import in_place
from tests.databases.test_upgrades import database_at

SQLITE = "SELECT type, name, tbl_name, sql FROM sqlite_master"
POSTGRESQL = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity,"
    " character_maximum_length, numeric_precision, numeric_scale"
    " FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace",
    "SELECT sequencename, data_type::text FROM pg_sequences",
)


def by_all_steps() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    with translation.override(None):
        emit_post_migrate_signal(0, False, "default")


def at_once() -> None:
    call_command("migrate", verbosity=0)


# --- What is in it --------------------------------------------------------------------


def schema() -> list[tuple[Any, ...]]:
    """Tables, columns, constraints, indexes and triggers, in no order."""
    if connection.vendor == "postgresql":
        return [row for query in POSTGRESQL for row in sorted(fetch(query), key=repr)]
    return sorted((*names, parts(sql or "")) for *names, sql in fetch(SQLITE))


def fetch(query: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return [*cursor.fetchall()]


def parts(sql: str) -> list[str]:
    """The columns and constraints of a table; columns stand in the order in which they came."""
    body = " ".join(sql.split())
    if not body.startswith("CREATE TABLE"):
        return [body]
    inside = body[body.index("(") + 1 : body.rindex(")")]
    return sorted(part.strip() for part in split(inside))


def split(text: str) -> Iterator[str]:
    """At the commas outside of brackets."""
    depth, start = 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def rows() -> dict[str, list[tuple[Any, ...]]]:
    """What each table has, but for numbers and times."""
    found = {model._meta.label: own_rows(model) for model in apps.get_models()}
    named = ("content_type__app_label", "content_type__model", "codename", "name")
    found["permissions"] = sorted(Permission.objects.values_list(*named))
    granted = ("name", *(f"permissions__{name}" for name in named))
    found["groups"] = sorted(Group.objects.values_list(*granted))
    found["migrations"] = sorted(fetch("SELECT app, name FROM django_migrations"))
    return found


def own_rows(model: type[models.Model]) -> list[tuple[Any, ...]]:
    if not model._meta.managed:
        return []
    names = [
        field.name
        for field in model._meta.concrete_fields
        if not isinstance(field, models.AutoField | models.DateTimeField | models.ForeignKey)
    ]
    return sorted(model._base_manager.values_list(*names), key=repr)


def outcome(database: Any, make: Callable[[], None]) -> tuple[Any, Any]:
    with in_place(database):
        make()
        result = schema(), rows()
        database.close()
    return result


# --- The same -------------------------------------------------------------------------


def test_a_new_database_has_what_all_migrations_make_on_sqlite(
    tmp_path: Path, django_db_setup: None, django_db_blocker: Any
):
    with django_db_blocker.unblock():
        new, old = (
            outcome(database_at(tmp_path / make.__name__), make) for make in (at_once, by_all_steps)
        )
    assert new == old
    assert len(new[1]["groups"]) == 163


@pytest.mark.slow
def test_a_new_database_has_what_all_migrations_make_on_postgresql(
    postgres_server: Any, django_db_setup: None, django_db_blocker: Any
):
    with django_db_blocker.unblock():
        new, old = (
            outcome(database_at(postgres_server.new_database()), make)
            for make in (at_once, by_all_steps)
        )
    assert new == old


def test_a_new_database_that_could_not_be_filled_has_nothing(
    tmp_path: Path, monkeypatch: Any, django_db_setup: None, django_db_blocker: Any
):
    monkeypatch.setattr(new_database, "_grants", lambda: {"viewer": {("agent", "unheard_of")}})
    with django_db_blocker.unblock(), in_place(database := database_at(tmp_path / "new")):
        with pytest.raises(KeyError):
            at_once()
        assert new_database.can_fill()
        database.close()


def test_where_somebody_added_an_app_every_step_is_taken(
    tmp_path: Path, django_db_setup: None, django_db_blocker: Any
):
    with django_db_blocker.unblock(), in_place(database := database_at(tmp_path / "new")):
        assert new_database.can_fill()
        with modify_settings(INSTALLED_APPS={"append": "django.contrib.sites"}):
            assert not new_database.can_fill()
        database.close()
