"""The row of the installation, and what the groups ``operator`` and ``viewer`` may do with it."""

from importlib import import_module

from django.db import migrations, models

import agent.models.installation

groups = import_module("agent.migrations.0002_groups")


def give(apps, schema_editor):
    """A group that was deleted stays away."""
    alias = schema_editor.connection.alias
    apps.get_model("agent", "Installation").objects.using(alias).get_or_create(pk=1)
    rows = apps.get_model("auth", "Group").objects.using(alias)
    read, *edits = [groups.permission(apps, alias, verb, "agent", "installation") for verb in ("view", "add", "change")]
    for group in rows.filter(name__in=("viewer", "operator")):
        group.permissions.add(read, *(edits if group.name == "operator" else ()))


class Migration(migrations.Migration):
    dependencies = [
        ("agent", "0014_budget_stops"),
    ]

    operations = [
        migrations.CreateModel(
            name='Installation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('time_zone', models.CharField(blank=True, default='', help_text='For times on pages and in prompts, for quiet hours, and for the days and months of sums, limits and budgets. Empty: the machine’s.', max_length=64, validators=[agent.models.installation.check_zone], verbose_name='time zone')),
                ('changed_on', models.CharField(blank=True, default='', editable=False, max_length=10)),
                ('begun_on', models.CharField(blank=True, default='', editable=False, max_length=10)),
            ],
            options={
                'verbose_name': 'system setting',
                'verbose_name_plural': 'system settings',
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
