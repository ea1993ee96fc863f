"""A new database: the newest tables at once, and the rows that an installation begins with.

The migrations bring databases of before to the same tables, in as many steps as there were. A new
one would take them all, twenty times as long. A test compares what comes of both.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AddField, CreateModel
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from agent.models import Budget, Installation, Persona

note_search, of_models, cockpit = (
    import_module(f"agent.migrations.{name}")
    for name in ("0003_note_search", "0008_group_permissions", "0012_cockpit_permissions")
)
groups = of_models.groups
OURS = ("agent", "frostproject", "onebot", "tools")
_LATER = (
    *("endpointchoice", "manners", "operatoract", "erasurereceipt", "installation"),
    *("alertroute", "reminder", "eventrule", "joinrequest", "requestrule"),
)
_READ = {**groups.READ, "agent": (*groups.READ["agent"], *of_models.READ, *_LATER)}
_EDITED = (*of_models.EDIT, "manners", "alertroute", "reminder", "eventrule", "requestrule")


#: The apps that this makes tables of. Those of others may do anything in their migrations.
KNOWN = {
    *OURS,
    *("admin", "auth", "channels", "contenttypes", "daphne", "messages", "sessions"),
    *("django_otp", "django_otp_webauthn", "staticfiles"),
}


def can_fill(alias: str = DEFAULT_DB_ALIAS) -> bool:
    """Whether a database has no table yet, and nobody added an app, whose migrations would not
    run."""
    added = {config.label for config in apps.get_app_configs()} - KNOWN
    return not added and not connections[alias].introspection.table_names()


def fill(alias: str = DEFAULT_DB_ALIAS, **said: Any) -> None:
    """Make of a new database what all migrations together would, or nothing. ``said`` goes on to
    those who hear of migrations: ``verbosity``, ``interactive``, ``stdout``."""
    connection = connections[alias]
    loader = MigrationLoader(connection)
    connection.disable_constraint_checking()  # not possible inside a transaction
    try:
        with transaction.atomic(alias):
            with connection.schema_editor() as editor:
                for model in apps.get_models():
                    if model._meta.can_migrate(connection):
                        editor.create_model(model)
                _add_what_is_left(editor, loader)
                _widen_keys(editor)
            note_search.create(apps, editor)
            _record_steps(connection, loader.disk_migrations)
            emit_post_migrate_signal(db=alias, apps=apps, plan=[], **said)
            _add_first_rows(alias)
    finally:
        connection.enable_constraint_checking()


def empty(alias: str = DEFAULT_DB_ALIAS) -> None:
    """Drop every table of the program, whatever version made it, and none of others that may share
    the database. To be called inside a transaction, without checks of constraints."""
    connection = connections[alias]
    known = {"django_migrations", *connection.introspection.django_table_names()}
    ending = " CASCADE" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        prefixes = tuple(f"{app}_" for app in OURS if "django_migrations" in tables)
        for table in tables:
            if table in known or table.startswith(prefixes):
                name = connection.ops.quote_name(table)
                cursor.execute(f"DROP TABLE IF EXISTS {name}{ending}")


def _add_what_is_left(editor: BaseDatabaseSchemaEditor, loader: MigrationLoader) -> None:
    """The tables and columns that migrations made and no model has: ours take nothing away."""
    for (app, _name), migration in sorted(loader.disk_migrations.items()):
        for operation in migration.operations if app in OURS else ():
            if isinstance(operation, CreateModel) and operation.name_lower not in _models(app):
                state = ProjectState()
                operation.state_forwards(app, state)
                operation.database_forwards(app, editor, ProjectState(), state)
            elif isinstance(operation, AddField) and operation.model_name_lower in _models(app):
                _add_column(editor, _models(app)[operation.model_name_lower], operation)


def _models(app: str) -> dict[str, Any]:
    return apps.all_models[app]


def _add_column(editor: BaseDatabaseSchemaEditor, model: Any, operation: AddField) -> None:
    """The column of ``operation``, where no field has it."""
    if operation.name in {name for one in model._meta.fields for name in (one.name, one.column)}:
        return
    field = operation.field.clone()
    field.set_attributes_from_name(operation.name)
    field.model = model
    # SQLite's own would make the table anew, without the columns that were added before.
    BaseDatabaseSchemaEditor.add_field(editor, model, field)


def _widen_keys(editor: BaseDatabaseSchemaEditor) -> None:
    """As migrations make them: they do not know that ``auth`` has asked for smaller numbers."""
    if editor.connection.vendor == "postgresql":
        for table in ("auth_group_permissions", "auth_user_groups", "auth_user_user_permissions"):
            editor.execute(f"ALTER TABLE {table} ALTER COLUMN id TYPE bigint")


def _record_steps(connection: Any, names: Iterable[tuple[str, str]]) -> None:
    recorder = MigrationRecorder(connection)
    recorder.ensure_schema()
    rows = [recorder.Migration(app=app, name=name) for app, name in sorted(names)]
    recorder.migration_qs.bulk_create(rows)


# --- The rows -----------------------------------------------------------------------


def _add_first_rows(alias: str) -> None:
    a_day = Budget(
        name="each person, a day",
        kind="person",
        period="day",
        limit=1_000_000,
        unit="tokens",
        at_limit="owners",
    )
    rows: list[Any] = [Persona(name="default", is_default=True), a_day, Installation(pk=1)]
    for row in rows:
        type(row)._base_manager.using(alias).bulk_create([row])  # counts as no change
    permissions = Permission.objects.using(alias).select_related("content_type")
    by_name = {(one.content_type.app_label, one.codename): one for one in permissions}
    for name, granted in _grants().items():
        group = Group.objects.using(alias).create(name=name)
        group.permissions.add(*(by_name[one] for one in sorted(granted)))


def _grants() -> dict[str, set[tuple[str, str]]]:
    """The permissions of each group: their apps and codenames."""
    reads = {(app, f"view_{model}") for app, models in _READ.items() for model in models}
    reads.add(("agent", cockpit.EVERY_CHAT[0]))
    acts = [("agent", codename) for codename, _words in cockpit.ACTS]
    edits = {
        *((app, f"add_{model}") for app, model in groups.ADD),
        *((app, f"change_{model}") for app, model in groups.CHANGE),
        *((app, f"delete_{model}") for app, model in groups.DELETE),
        *(("agent", f"{act}_{model}") for act in ("add", "change", "delete") for model in _EDITED),
        *(("agent", f"{act}_installation") for act in ("add", "change")),
        ("agent", "change_joinrequest"),
    }
    own = {
        *(("agent", f"view_{model}") for model in cockpit.OF_OWNERS),
        *(("agent", f"change_{model}") for model in ("chatsession", "approval")),
        *(("agent", f"{verb}_reminder") for verb in ("view", "add", "change")),
        *(("agent", f"{verb}_joinrequest") for verb in ("view", "change")),
    }
    return {
        "viewer": reads,
        "operator": {*reads, *edits, *acts},
        "chat_owner": {*own, *acts[:2]},
    }
