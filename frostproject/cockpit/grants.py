"""The chats that an account of the admin owns, on the page of that account."""

import re
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from agent.access import find_access
from agent.models import ChatGrant, ChatSession
from onebot.models import Bot

#: Accounts and chats that are offered.
ACCOUNTS, CHATS = 100, 200
_CHAT = re.compile(r"(?:group|private):[0-9]{1,20}", re.ASCII)

if TYPE_CHECKING:
    _Form = forms.ModelForm[ChatGrant]
    _Inline = admin.StackedInline[ChatGrant, User]
else:
    _Form, _Inline = forms.ModelForm, admin.StackedInline


def known_chats() -> "QuerySet[ChatSession]":
    """The chats with the newest messages, to be suggested."""
    newest = ChatSession.objects.order_by("-last_message_at", "-pk")
    return newest.only("kind", "peer_id", "title", "account")[:CHATS]


class GrantForm(_Form):
    """An account that was ever here, and all its chats or one of them."""

    account = forms.ChoiceField(label=pgettext_lazy("of a bot", "account"))

    class Meta:
        model = ChatGrant
        fields = ("account", "chat")
        help_texts = {  # noqa: RUF012 - as below
            "chat": _("group:ID or private:ID. Empty: every chat of the account.")
        }
        widgets = {"chat": forms.TextInput(attrs={"size": 32, "list": "known-chats"})}  # noqa: RUF012 - Django's own form

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        known = Bot.objects.order_by("-online", "self_id").values_list("self_id", flat=True)
        offered = dict.fromkeys([*known[:ACCOUNTS], *filter(None, [self.instance.account])])
        choices = [("", "---------"), *((one, one) for one in offered)]
        self.fields["account"].choices = choices  # type: ignore[attr-defined]

    def clean_chat(self) -> str:
        chat = str(self.cleaned_data["chat"]).strip()
        if chat and not _CHAT.fullmatch(chat):
            raise ValidationError(
                gettext("Write group:ID or private:ID, or nothing for all chats.")
            )
        return chat


class ChatGrantInline(_Inline):
    """Read by whoever may see the account, changed by superusers alone."""

    model = ChatGrant
    form = GrantForm
    extra = 0
    verbose_name_plural = _("Own chats")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("auth.view_user")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_give_rights(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_give_rights(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_give_rights(request.user)


def may_give_rights(user: Any) -> bool:
    """Whether ``user`` may give others groups, permissions and chats: superusers alone, for
    whoever may do so can have everything."""
    return bool(user.is_active and getattr(user, "is_superuser", False))


def may_rule_over(user: Any, other: User) -> bool:
    """Whether ``user`` can do and reach all that ``other`` can, who may therefore be changed by
    him, and be given a password."""
    if may_give_rights(user):
        return True
    held = Permission.objects.filter(Q(user=other) | Q(group__user=other))
    names = {
        f"{app}.{name}" for app, name in held.values_list("content_type__app_label", "codename")
    }
    if other.is_superuser or not names <= user.get_all_permissions():
        return False
    access = find_access(user)
    return access.is_everything or all(
        (account in access.accounts or (account, chat) in access.chats)
        for account, chat in ChatGrant.objects.filter(user=other).values_list("account", "chat")
    )
