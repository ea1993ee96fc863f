"""Words of Django that the operator reads: rights, the history of rows, and texts that Django
leaves in English."""

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_noop, pgettext_lazy

#: Texts of Django's admin that its own catalogue has no Chinese for; the project's has.
DJANGO_TEXTS = (
    gettext_noop("Error:"),
    gettext_noop("Forgotten your login credentials?"),
    gettext_noop("After you’ve created a user, you’ll be able to edit more user options."),
)
#: Tables of other packages, which have no Chinese.
TABLES = (
    gettext_noop("WebAuthn attestation"),
    gettext_noop("WebAuthn credential"),
    gettext_noop("WebAuthn user handle"),
)
#: What the rights that Django makes for every table are called.
RIGHTS = {
    "add": pgettext_lazy("right", "add"),
    "change": pgettext_lazy("right", "change"),
    "delete": pgettext_lazy("right", "delete"),
    "view": pgettext_lazy("right", "view"),
}


#: The groups that every installation begins with.
GROUPS = {
    "operator": pgettext_lazy("group of rights", "operator"),
    "viewer": pgettext_lazy("group of rights", "viewer"),
    "chat_owner": pgettext_lazy("group of rights", "owner of chats"),
}


def group_words(group: Group) -> str:
    """What a group is called in the reader's language."""
    return str(GROUPS.get(group.name, group.name))


def permission_words(permission: Permission) -> str:
    """A right in the reader's language: what it is about, and what it allows."""
    model = permission.content_type.model_class()
    about = (
        capfirst(gettext(str(model._meta.verbose_name))) if model else permission.content_type.model
    )
    action, _underscore, name = permission.codename.partition("_")
    if action in RIGHTS and name == permission.content_type.model:
        return f"{about}: {RIGHTS[action]}"
    return f"{about}: {gettext(permission.name)}"


if TYPE_CHECKING:
    _Field = forms.ModelMultipleChoiceField[Permission]
    _GroupsField = forms.ModelMultipleChoiceField[Group]
else:
    _Field = _GroupsField = forms.ModelMultipleChoiceField


class PermissionsField(_Field):
    """Rights to choose from, in the reader's language."""

    def label_from_instance(self, obj: Any) -> str:
        return permission_words(obj)


class GroupsField(_GroupsField):
    """Groups to choose from, in the reader's language."""

    def label_from_instance(self, obj: Any) -> str:
        return group_words(obj)


def change_words(entry: LogEntry) -> str:
    """What an entry of a row's history says, its fields called as the forms call them: Django
    keeps their names with a capital, under which no catalogue has them."""
    try:
        parts = json.loads(entry.change_message)
        for part in parts:
            if "changed" in part:
                fields = part["changed"]["fields"]
                part["changed"]["fields"] = [_field_words(name) for name in fields]
        return str(LogEntry(change_message=json.dumps(parts)).get_change_message())
    except (ValueError, KeyError, TypeError):  # words of this program, or of an older Django
        return entry.change_message


def _field_words(name: str) -> str:
    small = name[:1].lower() + name[1:]
    found = gettext(name)
    return str(capfirst(gettext(small))) if found == name else found
