"""Whether an account hears and cannot speak, and whether a connection was closed for its silence."""

import importlib

from django.db import migrations, models

AddColumn = importlib.import_module('onebot.migrations.0009_official_bots').AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ('onebot', '0010_events_of_accounts'),
    ]

    operations = [
        AddColumn(
            model_name='bot',
            name='silent_at',
            field=models.DateTimeField(blank=True, help_text='When a connection was closed because nothing came over it for three intervals of its heartbeats.', null=True, verbose_name='closed for silence'),
        ),
        AddColumn(
            model_name='bot',
            name='cannot_speak_since',
            field=models.DateTimeField(blank=True, help_text='The first of five sends or more in a row that failed or of which nobody knows, while events came. A message that arrives ends it.', null=True, verbose_name='cannot speak since'),
        ),
    ]
