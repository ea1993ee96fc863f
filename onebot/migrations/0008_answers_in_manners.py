"""Whom an account answers and how often stands in rows of manners: one for the account, and one each for
the groups that are answered and that never are. The columns stay, with what they hold, and nothing reads
them any more."""

from importlib import import_module
from typing import Any

from django.db import migrations

rules = import_module("agent.migrations.0017_answer_rules")
COLUMNS = (
    *("answered", "listed_people", "listed_groups", "blocked_people", "blocked_groups"),
    *rules.LIMITS,
)


def copy_policies(apps: Any, editor: Any) -> None:
    """New rows: those that are there stay as they are, also where they are for the same chats."""
    manners = apps.get_model("agent.Manners")
    for bot in apps.get_model("onebot.Bot").objects.order_by("pk"):
        said = {
            "answered": "" if bot.answered == "everybody" else bot.answered,
            "listed_people": bot.listed_people,
            "denied_people": bot.blocked_people,
        }
        said = {name: value for name, value in said.items() if value.strip()}
        limits = {name: value for name in rules.LIMITS if (value := getattr(bot, name)) is not None}
        if said or limits:
            rules.make_row(manners, bot.self_id, account=bot.self_id, **said, **limits)
        blocked = list_groups(bot.blocked_groups)
        listed = [group for group in list_groups(bot.listed_groups) if group not in blocked]
        for name, answered, groups in (
            ("answered groups", "everybody", listed),
            ("groups never answered", "nobody", blocked),
        ):
            if groups:
                place = {"account": bot.self_id, "chat_kind": "group", "chats": "\n".join(groups)}
                rules.make_row(manners, f"{name} ({bot.self_id})", answered=answered, **place)


def list_groups(text: str) -> list[str]:
    """The chats of groups, of which an id may have been written with its platform."""
    groups = (one.rpartition(":")[2] for one in rules.parse_ids(text))
    return list(dict.fromkeys(f"group:{group}" for group in groups if group))


class Migration(migrations.Migration):
    dependencies = [("onebot", "0007_introductions"), ("agent", "0017_answer_rules")]

    operations = [
        migrations.RunPython(copy_policies, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField("bot", name) for name in COLUMNS]
        ),
    ]
