"""The group ``chat_owner``, and what ``operator`` and ``viewer`` may do in chats besides reading them.

Who had any permission before sees every chat: nobody loses sight of anything, and what is not of
single chats stays open to them.
"""

from importlib import import_module

from django.db import migrations
from django.db.models import Q

groups = import_module("agent.migrations.0002_groups")
EVERY_CHAT = ("view_every_chat", "Can see every chat, not only own ones")
ACTS = (
    ("speak_in_chat", "Can answer by hand, take over, send again and cancel"),
    ("export_chatsession", "Can export chats"),
    ("erase_person", "Can erase a person"),
    ("use_playground", "Can use the playground"),
)
OF_OWNERS = (
    *("chatsession", "message", "run", "step", "toolcall", "approval", "operatoract"),
    *("description", "keptfile"),
)


def special(apps, alias, codename, name):
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.using(alias).get_or_create(
        app_label="agent", model="chatsession"
    )
    found, _ = apps.get_model("auth", "Permission").objects.using(alias).get_or_create(
        content_type=content_type, codename=codename, defaults={"name": name}
    )
    return found


def give(apps, schema_editor):
    """A group that was deleted stays away."""
    alias = schema_editor.connection.alias
    rows = apps.get_model("auth", "Group").objects.using(alias)
    users = apps.get_model("auth", "User").objects.using(alias)
    every = special(apps, alias, *EVERY_CHAT)
    acts = [special(apps, alias, *act) for act in ACTS]
    of_acts = [groups.permission(apps, alias, "view", "agent", name) for name in ("operatoract", "erasurereceipt")]
    of_before = Q(content_type__app_label__in=("agent", "onebot", "tools"))
    able = list(apps.get_model("auth", "Permission").objects.using(alias).filter(of_before).values_list("pk", flat=True))
    for group in rows.filter(permissions__in=able).exclude(name="chat_owner").distinct():
        group.permissions.add(every)
    for user in users.filter(user_permissions__in=able).distinct():
        user.user_permissions.add(every)
    for group in rows.filter(name__in=("viewer", "operator")):
        group.permissions.add(every, *of_acts, *(acts if group.name == "operator" else ()))
    owners, is_new = rows.get_or_create(name="chat_owner")
    if is_new:
        owners.permissions.add(
            *(groups.permission(apps, alias, "view", "agent", name) for name in OF_OWNERS),
            *(groups.permission(apps, alias, "change", "agent", name) for name in ("chatsession", "approval")),
            *(special(apps, alias, *act) for act in ACTS[:2]),
        )


class Migration(migrations.Migration):
    dependencies = [
        ("agent", "0011_cockpit"),
    ]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
