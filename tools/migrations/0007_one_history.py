"""The changes of rows hold all that operators do with rows: what Django's log has is moved there."""

from itertools import islice
from typing import Any

from django.db import migrations, models

KINDS = {1: "added", 2: "done", 3: "deleted"}
ADDED = '[{"added": {}}]'


def move_log(apps: Any, editor: Any) -> None:
    """Under numbers below those of the changes there are: lists that are in the order of numbers
    show them where they belong, after what was changed since changes are on record."""
    entries, changes = apps.get_model("admin.LogEntry"), apps.get_model("tools.ToolConfigChange")
    types = {
        one.pk: f"{one.app_label}.{one.model}"
        for one in apps.get_model("contenttypes.ContentType").objects.all()
    }
    newest = entries.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    rows = entries.objects.order_by("pk").iterator(500)
    while batch := list(islice(rows, 500)):
        moved = [
            changes(
                pk=entry.pk - newest - 1,
                kind=KINDS.get(entry.action_flag, "done"),
                subject=f"{types.get(entry.content_type_id, '')}:{entry.object_id or ''}"[:1000],
                name=entry.object_repr[:200],
                author_id=entry.user_id,
                words=entry.change_message or (ADDED if entry.action_flag == 1 else ""),
            )
            for entry in batch
        ]
        changes.objects.bulk_create(moved)
        for change, entry in zip(moved, batch, strict=True):  # a new row has the time of now
            change.at = entry.action_time
        changes.objects.bulk_update(moved, ["at"])
    entries.objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("tools", "0006_other_chats"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.AlterField(
            "toolconfigchange",
            "subject",
            models.CharField(blank=True, db_default="", default="", editable=False, max_length=1000),
        ),
        migrations.AddField(
            "toolconfigchange",
            "kind",
            models.CharField(db_default="changed", default="changed", editable=False, max_length=8),
        ),
        migrations.AddField(
            "toolconfigchange",
            "words",
            models.TextField(blank=True, db_default="", default="", editable=False),
        ),
        migrations.RunPython(move_log, migrations.RunPython.noop, elidable=False),
    ]
