"""A picture for each persona, in a row of its own."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0031_event_rules_by_field'),
    ]

    operations = [
        migrations.CreateModel(
            name='PersonaPicture',
            fields=[
                ('persona', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='portrait', serialize=False, to='agent.persona', verbose_name='persona')),
                ('content', models.BinaryField(verbose_name='picture')),
            ],
            options={
                'verbose_name': 'picture of a persona',
                'verbose_name_plural': 'pictures of personas',
                'default_permissions': (),
            },
        ),
    ]
