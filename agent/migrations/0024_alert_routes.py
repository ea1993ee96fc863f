"""Where alerts go, and what the groups ``operator`` and ``viewer`` may do there."""

from importlib import import_module

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

groups = import_module("agent.migrations.0002_groups")


def give(apps, schema_editor):
    """A group that was deleted stays away."""
    alias = schema_editor.connection.alias
    rows = apps.get_model("auth", "Group").objects.using(alias)
    read = groups.permission(apps, alias, "view", "agent", "alertroute")
    edits = [
        groups.permission(apps, alias, verb, "agent", "alertroute")
        for verb in ("add", "change", "delete")
    ]
    for group in rows.filter(name__in=("viewer", "operator")):
        group.permissions.add(read, *(edits if group.name == "operator" else ()))


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0023_spend_by_kind_and_day'),
    ]

    operations = [
        migrations.CreateModel(
            name='AlertRoute',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True, validators=[django.core.validators.RegexValidator('^[^\\x00-\\x1f\\x7f]*\\Z', 'No control characters.')], verbose_name='name')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('kind', models.CharField(choices=[('webhook', 'webhook'), ('owners', 'owners, in private'), ('mail', 'mail'), ('serverchan', 'Server酱'), ('bark', 'Bark'), ('telegram', 'Telegram'), ('dingtalk', 'DingTalk'), ('feishu', 'Feishu'), ('wecom', 'WeCom robot'), ('pushplus', 'PushPlus'), ('pushdeer', 'PushDeer'), ('ntfy', 'ntfy'), ('gotify', 'Gotify'), ('discord', 'Discord'), ('slack', 'Slack')], default='webhook', max_length=16, verbose_name='goes by')),
                ('sealed_address', models.TextField(blank=True, default='', editable=False)),
                ('alerts', models.JSONField(blank=True, default=list, help_text='None chosen: all.', verbose_name='alerts')),
                ('quiet_hours', models.TextField(blank=True, default='', help_text='One a line: 23:00-07:30. What still holds at their end is told then.', verbose_name='quiet hours')),
                ('outcome', models.CharField(blank=True, default='', editable=False, max_length=16)),
                ('outcome_at', models.DateTimeField(editable=False, null=True)),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='changed')),
            ],
            options={
                'verbose_name': 'alert route',
                'verbose_name_plural': 'alert routes',
                'ordering': ('name',),
            },
        ),
        migrations.CreateModel(
            name='AlertNotice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=300)),
                ('found', models.JSONField(default=dict)),
                ('first_seen_at', models.DateTimeField()),
                ('gone_at', models.DateTimeField(null=True)),
                ('told_at', models.DateTimeField(null=True)),
                ('sent', models.JSONField(default=list)),
                ('not_before', models.DateTimeField(null=True)),
                ('route', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='agent.alertroute')),
            ],
            options={
                'verbose_name': 'alert told',
                'verbose_name_plural': 'alerts told',
                'constraints': [models.UniqueConstraint(fields=('route', 'key'), name='alert_notice_once')],
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
