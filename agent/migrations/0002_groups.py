"""The groups ``operator`` (reads the record, edits what is the operator's: tools, approvals, chats' states, notes, stickers …) and ``viewer`` (reads).

Django makes permissions after all migrations, too late for this one, so those that
are needed are made here as Django would make them; it finds them and leaves them.
"""

from django.db import migrations

READ = {
    "onebot": ("bot", "clientevent"),
    "agent": (
        *("approval", "chatsession", "description", "digest", "keptfile", "mediafile", "message", "note"),
        *("noteproposal", "run", "step", "sticker", "toolcall"),
    ),
    "tools": (
        *("httptool", "mcpserver", "mcpserverstatus", "plugin", "plugincrash", "pluginlogline", "pluginstatus"),
        *("pluginvalue", "secret", "toolconfig", "toolconfigchange"),
    ),
}
OUTSIDE = (("tools", "httptool"), ("tools", "mcpserver"), ("tools", "secret"))  # enabling a plugin is the administrator's
ADD = (("agent", "mediafile"), ("agent", "note"), ("agent", "sticker"), *OUTSIDE)
CHANGE = (
    *(("agent", model) for model in ("approval", "chatsession", "note", "noteproposal", "sticker")),
    ("tools", "toolconfig"),
    *OUTSIDE,
)
DELETE = (
    *(("agent", model) for model in ("description", "keptfile", "mediafile", "note", "noteproposal", "sticker")),
    *OUTSIDE,
)


def make_groups(apps, schema_editor):
    Group = apps.get_model("auth", "Group")
    alias = schema_editor.connection.alias
    viewer, _ = Group.objects.using(alias).get_or_create(name="viewer")
    operator, _ = Group.objects.using(alias).get_or_create(name="operator")
    reads = [permission(apps, alias, "view", app, model) for app, models in READ.items() for model in models]
    viewer.permissions.add(*reads)
    for action, what in (("add", ADD), ("change", CHANGE), ("delete", DELETE)):
        operator.permissions.add(*(permission(apps, alias, action, app, model) for app, model in what))
    operator.permissions.add(*reads)


def permission(apps, alias, action, app, model):
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.using(alias).get_or_create(
        app_label=app, model=model
    )
    found, _ = apps.get_model("auth", "Permission").objects.using(alias).get_or_create(
        content_type=content_type,
        codename=f"{action}_{model}",
        defaults={"name": f"Can {action} {apps.get_model(app, model)._meta.verbose_name_raw}"},
    )
    return found


def remove_groups(apps, schema_editor):
    groups = apps.get_model("auth", "Group").objects.using(schema_editor.connection.alias)
    groups.filter(name__in=("viewer", "operator")).delete()


class Migration(migrations.Migration):

    dependencies = [
        ("agent", "0001_initial"),
        ("onebot", "0001_initial"),
        ("tools", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(make_groups, remove_groups)]
