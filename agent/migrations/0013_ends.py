"""The ends of silences and take-overs become columns; those under way are taken from the texts."""

from datetime import datetime
from typing import Any

from django.db import migrations, models
from django.utils.dateparse import parse_datetime


def _parse(text: Any) -> datetime | None:
    try:
        return parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        return None


def move_ends(apps: Any, editor: Any) -> None:
    change, act = apps.get_model("tools.ToolConfigChange"), apps.get_model("agent.OperatorAct")
    manners, session = apps.get_model("agent.Manners"), apps.get_model("agent.ChatSession")
    for pk in list(manners.objects.filter(silenced=True).values_list("pk", flat=True)):
        changes = change.objects.filter(subject=f"agent.manners:{pk}").order_by("-pk")
        afters = changes.values_list("after", flat=True).iterator()
        newest = next((after for after in afters if "silenced" in after), {})
        if end := _parse(newest.get("$until")):
            manners.objects.filter(pk=pk).update(silenced_until=end)
    for pk in list(session.objects.exclude(taken_over_by=None).values_list("pk", flat=True)):
        acts = act.objects.filter(session=pk, kind="take_over").order_by("-pk")
        if end := _parse(acts.values_list("detail", flat=True).first()):
            session.objects.filter(pk=pk).update(taken_over_until=end)


class Migration(migrations.Migration):
    dependencies = [
        ("agent", "0012_cockpit_permissions"),
        ("tools", "0006_other_chats"),
    ]

    operations = [
        migrations.AddField(
            model_name="chatsession",
            name="taken_over_until",
            field=models.DateTimeField(editable=False, null=True, verbose_name="taken over until"),
        ),
        migrations.AddIndex(
            model_name="chatsession",
            index=models.Index(
                condition=models.Q(("taken_over_until__isnull", False)),
                fields=["taken_over_until"],
                name="session_taken_until",
            ),
        ),
        migrations.AddField(
            model_name="manners",
            name="silenced_until",
            field=models.DateTimeField(editable=False, null=True, verbose_name="silenced until"),
        ),
        migrations.RunPython(move_ends, migrations.RunPython.noop),
    ]
