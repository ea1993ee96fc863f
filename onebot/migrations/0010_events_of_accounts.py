"""An index by which a page finds when an account went offline."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('onebot', '0009_official_bots'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='clientevent',
            index=models.Index(fields=['self_id', 'detail_type'], name='event_account'),
        ),
    ]
