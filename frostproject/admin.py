"""The name on every page of the admin, and accounts with their rights, chats, sign-in sessions and
second factors."""

import re
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import (
    AdminPasswordChangeForm,
    SetUnusablePasswordMixin,
    UserCreationForm,
)
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import (
    gettext,
    gettext_lazy as _,
    gettext_noop,
    ngettext,
    pgettext_lazy,
)

from agent.access import find_access
from agent.models import ChatGrant, ChatSession, Installation
from frostproject.cockpit.system import InstallationAdmin
from frostproject.signin import admin_site, factors, record
from onebot.models import Bot
from tools.admin.fields import LinesField, choosing
from tools.admin.record_pages import Column, LoggedAdmin, ModelForm, choice_filter
from tools.admin.settings_page import choice_alone

# The chats that an account of the admin owns, on the page of that account.

#: Accounts and chats that are offered.
ACCOUNTS, CHATS = 100, 200
_CHAT = re.compile(r"(?:group|private):[\w-]{1,64}", re.ASCII)

if TYPE_CHECKING:
    _Field = forms.ModelMultipleChoiceField[Any]
    _Inline = admin.StackedInline[ChatGrant, User]
    _UserAdmin = UserAdmin[User]
    _PasswordForm = AdminPasswordChangeForm[User]
    _AddForm = UserCreationForm[User]
else:
    _Field, _Inline, _UserAdmin = forms.ModelMultipleChoiceField, admin.StackedInline, UserAdmin
    _PasswordForm, _AddForm = AdminPasswordChangeForm, UserCreationForm


class GrantForm(ModelForm):
    """An account that was ever here, and all its chats or one of them."""

    account = forms.ChoiceField(label=pgettext_lazy("of a bot", "account"))

    class Meta:
        model = ChatGrant
        fields = ("account", "chat")
        help_texts = {  # noqa: RUF012 - as below
            "chat": _("group:ID or private:ID. Empty: every chat of the account.")
        }
        widgets = {  # noqa: RUF012 - Django's own form
            "chat": forms.TextInput(
                attrs=choosing("chat", "chat", fills="account", size=32, list="known-chats")
            )
        }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        known = Bot.objects.order_by("-online", "self_id").values_list("self_id", flat=True)
        offered = dict.fromkeys([*known[:ACCOUNTS], *filter(None, [self.instance.account])])
        self.fields["account"].choices = [("", "---------"), *((one, one) for one in offered)]  # type: ignore[attr-defined]

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

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.has_perm("auth.view_user")

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return may_give_rights(request.user)

    has_change_permission = has_delete_permission = has_add_permission


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


# Words of Django that the operator reads: rights, and texts that Django leaves in English.

#: Texts of Django's admin that its own catalogue has no Chinese for; the project's has.
DJANGO_TEXTS = (
    gettext_noop("Error:"),
    gettext_noop("Forgotten your login credentials?"),
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


#: What somebody may who may do everything; no group has a space at its begin.
EVERYTHING = " everything"
#: What people may do, those first who are meant to have little.
ROLES = {
    "chat_owner": _("Only chats of their own: see and steer those below"),
    "viewer": _("See everything and change nothing"),
    "operator": _("Run it: answer, approve, and set tools, rules and personas"),
    EVERYTHING: _("Everything, also give rights to others"),
}


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


class RightsField(_Field):
    """Rights or groups to choose from, in the reader's language."""

    def label_from_instance(self, obj: Any) -> str:
        return group_words(obj) if isinstance(obj, Group) else permission_words(obj)


class AccountForm(_AddForm):
    """A new account in one step: its name and password, what it may do, and its chats. ``user`` is
    who fills it in."""

    user: Any = None
    role = forms.ChoiceField(label=_("What they may do"), widget=forms.RadioSelect)
    chats = LinesField(
        label=_("Their chats"),
        required=False,
        help_text=_("For who has only chats of their own. One a line, such as group:123456."),
        widget=forms.Textarea(attrs=choosing("chat", "subject", rows=3, cols=40)),
    )

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        if not may_give_rights(self.user):
            del self.fields["role"], self.fields["chats"]
            return
        there = {group.name: group_words(group) for group in Group.objects.order_by("name")}
        offered = {name: words for name, words in ROLES.items() if name in {*there, EVERYTHING}}
        others = [(name, words) for name, words in there.items() if name not in offered]
        field: Any = self.fields["role"]
        field.choices = [*offered.items(), *others]

    def clean_chats(self) -> list[tuple[str, str]]:
        return [find_chat(line) for line in self.cleaned_data["chats"]]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        role, chats = cleaned.get("role"), cleaned.get("chats", [])
        if role == "chat_owner" and not chats and "chats" not in self.errors:
            self.add_error("chats", gettext("Which chats? Name at least one."))
        elif chats and role in ("viewer", "operator", EVERYTHING):
            self.add_error("chats", gettext("Leave this empty: they reach every chat anyway."))
        return cleaned

    def save(self, commit: bool = True) -> Any:
        self.instance.is_staff = True
        self.instance.is_superuser = self.cleaned_data.get("role") == EVERYTHING
        return super().save(commit)

    def _save_m2m(self) -> None:
        super()._save_m2m()  # type: ignore[misc]
        self.instance.groups.set(Group.objects.filter(name=self.cleaned_data.get("role")))
        for account, chat in dict.fromkeys(self.cleaned_data.get("chats", ())):
            ChatGrant.objects.create(user=self.instance, account=account, chat=chat)


def find_chat(line: str) -> tuple[str, str]:
    """The account and the key of the chat that ``line`` names: as the search gives it, or without
    its account where there is no doubt. Raises ValidationError."""
    parts = line.strip().replace("：", ":").removeprefix("onebot:").split(":")
    account, chat = ":".join(parts[:-2]), ":".join(parts[-2:])
    if not _CHAT.fullmatch(chat):
        words = gettext("“%(line)s” is no chat: write group:ID or private:ID.")
        raise ValidationError(words % {"line": line[:80]})
    bots = Bot.objects.values_list("self_id", flat=True)
    bots = bots.filter(self_id=account) if account else bots
    there = ChatSession.objects.filter(kind=parts[-2], peer_id=parts[-1], account__in=bots)
    found = set(there.values_list("account", flat=True)) or {*bots[:2]}
    if len(found) == 1:
        return found.pop(), chat
    words = gettext("Which account? Write onebot:ACCOUNT:%(chat)s, with one that was here.")
    raise ValidationError(words % {"chat": chat})


admin.site.site_header = "FrostAgent"
admin.site.site_title = "FrostAgent"
admin.site.index_title = _("Overview")
admin.site.site_url = None  # the site is the admin

admin.site.register(Installation, InstallationAdmin)
admin.site.unregister(User)
admin.site.unregister(Group)


_BOXES = {
    "is_active": (_("May sign in"), _("Take it away instead of deleting the account.")),
    "is_staff": (_("May open these pages"), _("Which of them, groups and permissions say.")),
    "is_superuser": (_("May do everything"), _("Every permission, also those to come.")),
}


class PasswordForm(_PasswordForm):
    """Django puts this help together when it is loaded, in the language of the installation."""

    usable_password_help_text = lazy(format_html, str)(
        '{}<ul id="id_unusable_warning" class="messagelist"><li class="warning">{}</li></ul>',
        SetUnusablePasswordMixin.usable_password_help_text,
        _("If disabled, the current password of this account will be lost."),
    )


#: Accounts by what they may do.
RoleFilter = choice_filter(
    _("what they may do"),
    "role",
    lambda request: [
        (EVERYTHING, _("everything")),
        *((g.name, group_words(g)) for g in Group.objects.all()),
    ],
    lambda rows, value: (
        rows.filter(is_superuser=True) if value == EVERYTHING else rows.filter(groups__name=value)
    ),
)


@admin.register(User)
class AccountAdmin(LoggedAdmin, _UserAdmin):
    list_display = ("username", "role", "own_chats", "may_sign_in", "second_factor")
    list_filter = (RoleFilter, "is_active")
    search_fields = ("username", "email")
    actions = ("reset_second_factor",)
    inlines = (ChatGrantInline,)
    filter_horizontal = ("user_permissions",)
    change_password_form = PasswordForm
    add_form = AccountForm
    add_form_template = change_form_template = "admin/auth/user/change_form.html"
    add_fieldsets = ((None, {"fields": ("username", "password1", "password2", "role", "chats")}),)
    fieldsets = (
        (None, {"fields": ("username", "is_active", "is_staff", "is_superuser", "groups")}),
        (_("Rights one by one"), {"classes": ("collapse",), "fields": ("user_permissions",)}),
        (_("Mail address"), {"classes": ("collapse",), "fields": ("email",)}),
    )
    columns: ClassVar = {
        "role": Column(
            _("what they may do"),
            lambda user: (
                gettext("everything")
                if user.is_superuser
                else ", ".join(map(group_words, user.groups.all())) or "-"
            ),
        ),
        "own_chats": Column(
            _("own chats"), lambda user: ", ".join(map(str, user.chat_grants.all())) or "-"
        ),
        "may_sign_in": Column(
            _("may sign in"), lambda user: user.is_active, "is_active", boolean=True
        ),
        "second_factor": Column(
            _("Second factor"), lambda user: bool(user.has_factor), boolean=True
        ),
    }
    #: What only superusers give.
    rights: ClassVar = ("is_superuser", "groups", "user_permissions")

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        rows: QuerySet[User] = super().get_queryset(request)
        return rows.prefetch_related("groups", "chat_grants").annotate(
            has_factor=Exists(
                User.objects.filter(factors.second_factor_condition(), pk=OuterRef("pk"))
            )
        )

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **options: Any) -> Any:
        if db_field.name == "groups":
            options["widget"] = forms.CheckboxSelectMultiple
        options["form_class"] = RightsField
        return super().formfield_for_manytomany(db_field, request, **options)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form = super().get_form(request, obj, change=change, **options)
        return type(form.__name__, (form,), {"user": request.user})

    def get_fieldsets(self, request: HttpRequest, obj: object = None) -> Any:
        if obj is not None or may_give_rights(request.user):
            return super().get_fieldsets(request, obj)
        return ((None, {"fields": ("username", "password1", "password2")}),)

    def response_add(self, request: HttpRequest, obj: Any, *arguments: Any) -> Any:
        """All was asked for: back to the list."""
        return admin.ModelAdmin.response_add(self, request, obj, *arguments)

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Any:
        own = tuple(super().get_readonly_fields(request, obj))
        return own if may_give_rights(request.user) else (*own, *self.rights)

    def get_inline_instances(self, request: HttpRequest, obj: object = None) -> Any:
        """A new account gets its chats on its page, once it is there."""
        return super().get_inline_instances(request, obj) if obj else []

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """What the boxes let somebody do, in words."""
        field: Any = choice_alone(super().formfield_for_dbfield(db_field, request, **options))
        if words := _BOXES.get(db_field.name):
            field.label, field.help_text = words
        return field

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Nobody changes the account, or sets the password, of somebody who may do more."""
        may: bool = super().has_change_permission(request, obj)
        return may and (obj is None or may_rule_over(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        may: bool = super().has_delete_permission(request, obj)
        return may and (obj is None or may_rule_over(request.user, obj))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *arguments: Any, **options: Any
    ) -> Any:
        person = options.get("obj")
        if person is not None and may_give_rights(request.user):
            newest = ChatSession.objects.order_by("-last_message_at", "-pk")  # to be suggested
            chats = newest.only("kind", "peer_id", "title", "account")[:CHATS]
            context |= {"sessions": admin_site.list_sessions(request, person), "chats": chats}
        return super().render_change_form(request, context, *arguments, **options)

    @admin.action(
        description=_("Reset the second factor of the selected accounts"), permissions=["reset"]
    )
    def reset_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        names = [user.get_username() for user in queryset if factors.delete_second_factors(user)]
        for user in queryset.filter(username__in=names):
            record.log_factor_change(user, f"was reset by {request.user.get_username()!r}")
            self.log_change(request, user, "The second factor was reset.")
        text = ngettext(
            "The second factor of %d account was reset.",
            "The second factor of %d accounts was reset.",
            len(names),
        )
        self.message_user(
            request, text % len(names), messages.SUCCESS if names else messages.WARNING
        )

    def has_reset_permission(self, request: HttpRequest) -> bool:
        """For superusers only: who may reset could then set a password and sign in as that user."""
        return may_give_rights(request.user)


@admin.register(Group)
class RightsAdmin(LoggedAdmin, GroupAdmin):
    """Groups give rights, so superusers alone change them."""

    list_display = ("called",)
    columns: ClassVar = {"called": Column(_("name"), group_words, admin_order_field="name")}

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest | None = None, **options: Any
    ) -> Any:
        return super().formfield_for_manytomany(
            db_field, request, **options, form_class=RightsField
        )

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return may_give_rights(request.user)

    has_change_permission = has_delete_permission = has_add_permission
