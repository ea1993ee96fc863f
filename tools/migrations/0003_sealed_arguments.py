"""Arguments of MCP servers are sealed, as headers and variables are: keys tend to stand in them."""

import json

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from tools.vault import seal


def seal_arguments(apps: Apps, _editor: BaseDatabaseSchemaEditor) -> None:
    """The open column stays, empty: an older version of the program then runs commands without arguments, and does not fail."""
    for server in apps.get_model("tools", "McpServer").objects.order_by("pk"):
        if isinstance(server.plain_arguments, list) and server.plain_arguments:
            texts = [str(one) for one in server.plain_arguments]
            server.sealed_arguments, server.plain_arguments = seal(json.dumps(texts, ensure_ascii=False)), []
            server.save(update_fields=["sealed_arguments", "plain_arguments"])


class Migration(migrations.Migration):
    dependencies = [("tools", "0002_secret_hosts")]

    operations = [
        migrations.AddField("mcpserver", "sealed_arguments", models.TextField(db_default="", default="", editable=False)),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("mcpserver", "arguments", "plain_arguments"),
                migrations.AlterField(
                    "mcpserver",
                    "plain_arguments",
                    models.JSONField(blank=True, db_column="arguments", default=list, editable=False),
                ),
            ]
        ),
        migrations.RunPython(seal_arguments, migrations.RunPython.noop, elidable=True),
    ]
