"""Tools of servers and plugins are for owners until somebody has looked. Those that are there were open before: they
count as looked at, with the declaration that they have now."""

import hashlib
import json

from django.db import migrations, models
from django.db.models import Value


def count_as_looked_at(apps, schema_editor):
    configs = apps.get_model("tools", "ToolConfig").objects.using(schema_editor.connection.alias)
    for config in configs.only("pk", "declaration").iterator(chunk_size=100):
        said = config.declaration or {}
        if said.get("provider_type") not in ("mcp", "plugin"):
            continue
        judged = {key: value for key, value in said.items() if key not in ("icons", "provider_type")}
        mark = hashlib.sha256(json.dumps(judged, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
        configs.filter(pk=config.pk).update(fingerprint=mark, looked_at=mark, looked_declaration=said)


def nothing(apps, schema_editor):
    """The columns go."""


class Migration(migrations.Migration):
    dependencies = [("tools", "0003_sealed_arguments")]

    operations = [
        migrations.AddField(
            "toolconfig",
            "fingerprint",
            models.CharField(blank=True, db_default=Value(""), default="", editable=False, max_length=100),
        ),
        migrations.AddField(
            "toolconfig",
            "looked_at",
            models.CharField(
                blank=True, db_default=Value(""), default="", editable=False, max_length=100, verbose_name="looked at"
            ),
        ),
        migrations.AddField(
            "toolconfig",
            "looked_declaration",
            models.JSONField(blank=True, default=None, editable=False, null=True),
        ),
        migrations.RunPython(count_as_looked_at, nothing),
    ]
