"""Sums of a kind by their days, for pages that add up a period."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent", "0022_daily_acts")]

    operations = [
        migrations.AddIndex(
            model_name="spendsum",
            index=models.Index(fields=["kind", "day"], name="spend_kind_day"),
        )
    ]
