"""The tokens of a day stand in the sums of what was spent alone. The table of before stays, with its
rows; nothing reads it or adds to it."""

from typing import Any

from django.db import migrations
from django.db.models import F, Sum


def copy_tokens(apps: Any, editor: Any) -> None:
    """Add to the sums what they lack of the tokens of each day."""
    spending, sums = apps.get_model("agent.Spending"), apps.get_model("agent.SpendSum")
    totals = sums.objects.filter(kind="total", subject="").order_by().values_list("day")
    known = dict(totals.annotate(tokens=Sum(F("input_tokens") + F("output_tokens"))))
    for day, tokens in spending.objects.values_list("day", "tokens"):
        if (missing := tokens - known.get(day, 0)) > 0:
            row, _ = sums.objects.get_or_create(day=day, kind="total", subject="", currency="")
            sums.objects.filter(pk=row.pk).update(input_tokens=F("input_tokens") + missing)


class Migration(migrations.Migration):
    dependencies = [("agent", "0015_installation")]

    operations = [
        migrations.RunPython(copy_tokens, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Spending")]
        ),
    ]
