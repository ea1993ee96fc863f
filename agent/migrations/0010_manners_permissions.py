"""What the groups ``operator`` and ``viewer`` may do with manners."""

from importlib import import_module

from django.db import migrations

groups = import_module("agent.migrations.0002_groups")


def give(apps, schema_editor):
    """A group that was deleted stays away."""
    alias = schema_editor.connection.alias
    rows = apps.get_model("auth", "Group").objects.using(alias)
    read = groups.permission(apps, alias, "view", "agent", "manners")
    edits = [groups.permission(apps, alias, verb, "agent", "manners") for verb in ("add", "change", "delete")]
    for group in rows.filter(name__in=("viewer", "operator")):
        group.permissions.add(read, *(edits if group.name == "operator" else ()))


class Migration(migrations.Migration):
    dependencies = [
        ("agent", "0009_manners"),
    ]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
