"""How often a tool may be called in one chat a day."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tools', '0008_kept_lists'),
    ]

    operations = [
        migrations.AddField(
            model_name='toolconfig',
            name='calls_per_day_chat',
            field=models.PositiveIntegerField(blank=True, help_text="Counted when a call begins, for the day of the chat's zone. Empty: no limit.", null=True, validators=[django.core.validators.MaxValueValidator(10000)], verbose_name='calls per day and chat'),
        ),
    ]
