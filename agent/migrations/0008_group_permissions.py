"""What the groups ``operator`` and ``viewer`` may do with models, personas and budgets."""

from importlib import import_module

from django.db import migrations

groups = import_module("agent.migrations.0002_groups")
READ = ("modelendpoint", "persona", "personachoice", "budget", "spendsum")
EDIT = ("modelendpoint", "persona", "personachoice", "endpointchoice", "budget")


def give(apps, schema_editor):
    """A group that was deleted stays away."""
    alias = schema_editor.connection.alias
    rows = apps.get_model("auth", "Group").objects.using(alias)
    reads = [groups.permission(apps, alias, "view", "agent", model) for model in (*READ, "endpointchoice")]
    edits = [groups.permission(apps, alias, verb, "agent", model) for verb in ("add", "change", "delete") for model in EDIT]
    for group in rows.filter(name__in=("viewer", "operator")):
        group.permissions.add(*reads, *(edits if group.name == "operator" else ()))


class Migration(migrations.Migration):
    dependencies = [
        ("agent", "0007_models_and_personas"),
    ]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
