"""The values that define where, by whom and how a row's tool may be called."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class ToolVisibility(TextChoices):
    VISIBLE = "visible", _("visible")
    DEFERRED = "deferred", _("deferred")
    HIDDEN = "hidden", _("hidden")


class ToolScope(TextChoices):
    ALL = "all", _("everywhere")
    GROUP = "group", _("group chats only")
    PRIVATE = "private", _("private chats only")


class AllowedCallers(TextChoices):
    """Who may use a tool. The owners of the bot always may."""

    EVERYONE = "everyone", _("everyone")
    OWNERS = "owners", _("owners of the bot")
    PEOPLE = "people", _("listed people")
    GROUPS = "groups", _("listed groups")
    GROUP_ADMINS = "group_admins", _("owners and admins of the group")


class ApprovalMode(TextChoices):
    OWN = "own", _("as the tool itself says")
    ALWAYS = "always", _("every call")
    NEVER = "never", _("no call")
