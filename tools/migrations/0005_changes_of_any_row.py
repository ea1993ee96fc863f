"""The table of changes of tool configs holds changes of other rows as well. What it has stays as it is."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tools", "0004_looked_at")]

    operations = [
        migrations.AlterModelOptions(
            "toolconfigchange",
            {"ordering": ("-id",), "verbose_name": "change", "verbose_name_plural": "changes"},
        ),
        migrations.AlterField(
            "toolconfigchange",
            "config",
            models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="changes",
                to="tools.toolconfig",
                verbose_name="tool config",
            ),
        ),
        migrations.AddField(
            "toolconfigchange",
            "subject",
            models.CharField(blank=True, db_default="", default="", editable=False, max_length=100),
        ),
        migrations.AddField(
            "toolconfigchange",
            "name",
            models.CharField(
                blank=True, db_default="", default="", editable=False, max_length=200, verbose_name="name"
            ),
        ),
        migrations.AddIndex("toolconfigchange", models.Index(fields=["subject", "-id"], name="change_subject")),
    ]
