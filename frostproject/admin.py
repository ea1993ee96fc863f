"""The name on every page of the admin, and accounts with their rights, chats, sign-in sessions and
second factors."""

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from frostproject.cockpit.grants import ChatGrantInline, known_chats, may_give_rights, may_rule_over
from frostproject.cockpit.words import GroupsField, PermissionsField, group_words
from frostproject.signin import factors, record
from frostproject.signin.session_pages import list_sessions

admin.site.site_header = "FrostAgent"
admin.site.site_title = "FrostAgent"
admin.site.index_title = _("Overview")
admin.site.site_url = None  # the site is the admin

if TYPE_CHECKING:
    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


_BOXES = {
    "is_active": (_("May sign in"), _("Take it away instead of deleting the account.")),
    "is_staff": (_("May open these pages"), _("Which of them, groups and permissions say.")),
    "is_superuser": (_("May do everything"), _("Every permission, also those to come.")),
}


@admin.register(User)
class AccountAdmin(_UserAdmin):
    list_display = ("username", "email", "is_staff", "is_superuser", "second_factor")
    actions = ("reset_second_factor",)
    inlines = (ChatGrantInline,)
    change_form_template = "admin/auth/user/change_form.html"
    #: What only superusers give.
    rights: ClassVar = ("is_superuser", "groups", "user_permissions")

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        rows: QuerySet[User] = super().get_queryset(request)
        return rows.annotate(
            has_factor=Exists(
                User.objects.filter(factors.second_factor_condition(), pk=OuterRef("pk"))
            )
        )

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **options: Any) -> Any:
        if db_field.name == "user_permissions":
            options["form_class"] = PermissionsField
        if db_field.name == "groups":
            options["form_class"] = GroupsField
        return super().formfield_for_manytomany(db_field, request, **options)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        own = tuple(super().get_readonly_fields(request, obj))
        return own if may_give_rights(request.user) else (*own, *self.rights)

    def get_inline_instances(self, request: HttpRequest, obj: Any = None) -> Any:
        """A new account gets its chats on its page, once it is there."""
        return super().get_inline_instances(request, obj) if obj else []

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """What the boxes let somebody do, in words."""
        field: Any = super().formfield_for_dbfield(db_field, request, **options)
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
            context |= {"sessions": list_sessions(request, person), "chats": known_chats()}
        return super().render_change_form(request, context, *arguments, **options)

    @admin.display(description=_("Second factor"), boolean=True)
    def second_factor(self, user: Any) -> bool:
        return bool(user.has_factor)

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
class RightsAdmin(GroupAdmin):
    """Groups give rights, so superusers alone change them."""

    list_display = ("called",)

    @admin.display(description=_("name"), ordering="name")
    def called(self, group: Group) -> str:
        return group_words(group)

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest | None = None, **options: Any
    ) -> Any:
        return super().formfield_for_manytomany(
            db_field, request, **options, form_class=PermissionsField
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_give_rights(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may_give_rights(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may_give_rights(request.user)
