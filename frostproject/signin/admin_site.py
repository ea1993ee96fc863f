"""The admin, with a second factor for those who have one."""

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from frostproject.signin import (
    again,
    factors,
    known,
    pages,
    passkeys,
    record,
    session_pages,
    sessions,
)
from frostproject.signin.attempt import find_attempt


class FrostAdminSite(AdminSite):
    """Django's admin site, but users with a second factor cannot sign in with the password
    alone."""

    login_template = "admin/sign_in.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return (
            super().has_permission(request)
            and not self.needs_second_factor(request)
            and not sessions.has_ended(request)
        )

    def needs_second_factor(self, request: HttpRequest) -> bool:
        """Whether the session has still to be let in by a second factor. At most one query a
        request."""
        user: Any = request.user
        if not isinstance(user, User) or user.is_verified():  # type: ignore[attr-defined]  # django-otp's middleware adds it
            return False
        if not hasattr(request, "_needs_second_factor"):
            request._needs_second_factor = factors.has_second_factor(user)  # type: ignore[attr-defined]
        return bool(request._needs_second_factor)  # type: ignore[attr-defined]

    def get_urls(self) -> list[URLPattern | URLResolver]:
        begin, complete = passkeys.BeginSignIn.as_view(), passkeys.CompleteSignIn.as_view()
        own = [
            path("sign-in-again/", self.admin_view(self.sign_in_again), name="sign_in_again"),
            path("second-factor/", self.admin_view(self.second_factor), name="second_factor"),
            path(
                "sign-in-sessions/", self.admin_view(self.sign_in_sessions), name="sign_in_sessions"
            ),
            path(
                "sign-in-sessions/<int:user_pk>/",
                self.admin_view(self.sign_in_sessions),
                name="sign_in_sessions_of",
            ),
            path("second-factor/check/", self.second_factor_check, name="second_factor_check"),
            path("passkeys/begin/", csrf_protect(begin), name="passkey_begin"),
            path("passkeys/complete/", csrf_protect(complete), name="passkey_complete"),
            path(
                "passkeys/add/begin/",
                self.admin_view(passkeys.BeginRegistration.as_view()),
                name="passkey_add_begin",
            ),
            path(
                "passkeys/add/complete/",
                self.admin_view(passkeys.CompleteRegistration.as_view()),
                name="passkey_add_complete",
            ),
        ]
        return own + super().get_urls()

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        return super().admin_view(again.require_fresh_sign_in(view), cacheable)

    def second_factor(self, request: HttpRequest) -> HttpResponse:
        return pages.own_factors_page(request, self)

    def sign_in_sessions(self, request: HttpRequest, user_pk: int | None = None) -> HttpResponse:
        return session_pages.sessions_page(request, self, user_pk)

    @method_decorator(sensitive_post_parameters("password"))
    def sign_in_again(self, request: HttpRequest) -> HttpResponse:
        return again.sign_in_again_page(request, self)

    @method_decorator(never_cache)
    @method_decorator(csrf_protect)
    def second_factor_check(self, request: HttpRequest) -> HttpResponse:
        return pages.second_factor_check_page(request, self)

    @method_decorator(never_cache)
    def login(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        if (
            request.method == "GET"
            and super().has_permission(request)
            and self.needs_second_factor(request)
        ):
            further = request.GET.get(REDIRECT_FIELD_NAME, "")
            return HttpResponseRedirect(
                reverse("admin:second_factor_check")
                + (f"?{urlencode({'next': further})}" if further else "")
            )
        answer: HttpResponseBase = super().login(
            request, {**(extra_context or {}), "is_possible": passkeys.can_offer_passkeys(request)}
        )
        user = request.user
        if (
            request.method == "POST"
            and answer.status_code == 302
            and isinstance(user, User)
            and not factors.has_second_factor(user)
        ):
            known.remember_browser(request, answer, user.get_username())
        return answer

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Django's form, which asks for the old password; a wrong one counts as a failed
        sign-in."""
        answer = super().password_change(request, extra_context)
        if request.method == "POST":
            find_attempt(request).succeeded = answer.status_code == 302
            form = (getattr(answer, "context_data", None) or {}).get("form")
            if (
                form is not None
                and "old_password" in form.errors
                and isinstance(request.user, User)
            ):
                record.record_failure(request, request.user.get_username(), "old password")
        return answer
