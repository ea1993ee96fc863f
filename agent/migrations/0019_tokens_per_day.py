"""The budget that mirrors TOKENS_PER_DAY: which variable it mirrors, and room for its limit."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent', '0018_sums_of_earlier_days'),
    ]

    operations = [
        migrations.AddField(
            model_name='budget',
            name='environment',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=16),
        ),
        migrations.AlterField(
            model_name='budget',
            name='limit',
            field=models.DecimalField(decimal_places=4, max_digits=20, validators=[django.core.validators.MinValueValidator(0)], verbose_name='limit'),
        ),
    ]
