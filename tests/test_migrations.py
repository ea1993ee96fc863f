"""Migrations are additive: what a database may already have run stays as it is, and nothing that it
has is taken away.

``migrations.sha256`` lists every migration, as sha256sum writes it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Field

from tests.agent.databases import inside, postgres  # noqa: F401 - a fixture
from tests.environment import PROJECT

FROZEN = Path(__file__).with_name("migrations.sha256")
APPS = ("agent", "frostproject", "onebot", "tools")
#: What takes something away all the same, as :func:`harm` words it, and why no code of before
#: misses it.
ALLOWED: dict[str, str] = {}


# --- Frozen ---------------------------------------------------------------------


def frozen() -> dict[str, str]:
    """The checksum of each listed migration, by its path."""
    lines = FROZEN.read_text(encoding="ascii").splitlines()
    return {path: checksum for checksum, path in (line.split() for line in lines)}


def present() -> dict[str, str]:
    """The same of the migrations that are there."""
    files = sorted(
        file
        for app in APPS
        for file in (PROJECT / app / "migrations").glob("*.py")
        if file.name != "__init__.py"
    )
    return {
        str(file.relative_to(PROJECT)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


@pytest.mark.parametrize("path", frozen())
def test_a_migration_of_before_is_never_edited_or_removed(path):
    if present().get(path) != frozen()[path]:
        pytest.fail(
            f"{path} was edited or removed, and databases have run it: "
            "put it back and write a new migration"
        )


def test_every_migration_is_on_the_list_of_those_that_stay():
    if new := sorted(set(present()) - set(frozen())):
        pytest.fail(
            f"once it is as it should be for ever: sha256sum {' '.join(new)} >> tests/{FROZEN.name}"
        )


# --- Additive -------------------------------------------------------------------

TAKES_AWAY = (
    migrations.RemoveField,
    migrations.DeleteModel,
    migrations.RenameField,
    migrations.RenameModel,
    migrations.AlterModelTable,
)


def harm(operations: Sequence[Operation], app: str, state: ProjectState) -> Iterator[str]:
    """What ``operations`` take from code of before: columns, tables, names, or room for values.
    Advances ``state``."""
    for operation in operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from harm(operation.database_operations, app, state.clone())
        elif isinstance(operation, TAKES_AWAY):
            yield f"{app}: {operation.describe()}"
        elif isinstance(operation, migrations.RunSQL) and any(
            word in str(operation.sql).upper() for word in ("DROP", "RENAME")
        ):
            yield f"{app}: {operation.sql}"
        elif isinstance(operation, migrations.AlterField):
            before = state.models[app, operation.model_name_lower].get_field(operation.name)
            if is_narrower(before, operation.field):
                yield f"{app}: {operation.describe()}"
        operation.state_forwards(app, state)


def is_narrower(before: Field, after: Field) -> bool:
    """Whether the new column has another name or type, or refuses values that the old one took."""
    lengths = [
        field.max_length if field.max_length is not None else float("inf")
        for field in (before, after)
    ]
    return (
        type(before) is not type(after)
        or before.db_column != after.db_column
        or (before.null and not after.null)
        or (after.unique and not before.unique)
        or lengths[1] < lengths[0]
    )


def all_harm() -> Iterator[str]:
    """Of every migration of the project."""
    loader = MigrationLoader(None)
    for app, name in sorted(node for node in loader.disk_migrations if node[0] in APPS):
        before = loader.project_state((app, name), at_end=False)
        yield from harm(loader.disk_migrations[app, name].operations, app, before)


def test_no_migration_takes_away_what_code_of_before_needs():
    for what in all_harm():
        if what not in ALLOWED:
            pytest.fail(
                f"{what!r}: add a new one next to it instead, "
                "or name it in ALLOWED with the reason why nothing needs it"
            )


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("message", "detail"),
        migrations.RenameField("message", "detail", "why"),
        migrations.DeleteModel("digest"),
        migrations.RenameModel("digest", "summary"),
        migrations.AlterField("message", "detail", models.CharField(max_length=20)),
        migrations.AlterField("message", "echo", models.CharField(max_length=64)),
        migrations.AlterField("message", "sender_id", models.CharField(max_length=63)),
        migrations.RunSQL("ALTER TABLE agent_message DROP COLUMN detail"),
    ],
)
def test_what_takes_something_away_is_noticed(operation):
    assert len(list(harm([operation], "agent", MigrationLoader(None).project_state()))) == 1


def test_what_adds_something_is_no_harm():
    new = [
        migrations.AddField("message", "mood", models.TextField(default="")),
        migrations.AlterField(
            "message", "sender_id", models.CharField(max_length=65, blank=True, null=True)
        ),
        migrations.CreateModel("Claim", [("id", models.BigAutoField(primary_key=True))]),
    ]
    assert list(harm(new, "agent", MigrationLoader(None).project_state())) == []


# --- Complete -------------------------------------------------------------------


@pytest.mark.django_db
def test_no_model_waits_for_a_migration_on_sqlite():
    assert connection.vendor == "sqlite"
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_no_model_waits_for_a_migration_on_postgresql(postgres, django_db_blocker):  # noqa: F811
    with django_db_blocker.unblock(), inside(postgres):
        call_command("makemigrations", check=True, dry_run=True, verbosity=0)
