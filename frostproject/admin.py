"""The name on every page of the admin, and accounts with their second factors."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from frostproject.signin import factors, record

admin.site.site_header = "FrostAgent"
admin.site.site_title = "FrostAgent"
admin.site.index_title = _("Overview")
admin.site.site_url = None  # the site is the admin

if TYPE_CHECKING:
    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

admin.site.unregister(User)


@admin.register(User)
class AccountAdmin(_UserAdmin):
    list_display = ("username", "email", "is_staff", "is_superuser", "second_factor")
    actions = ("reset_second_factor",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        rows: QuerySet[User] = super().get_queryset(request)
        return rows.annotate(
            has_factor=Exists(
                User.objects.filter(factors.second_factor_condition(), pk=OuterRef("pk"))
            )
        )

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
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))
