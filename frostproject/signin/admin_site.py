"""The admin, with a second factor for those who have one."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django_otp_webauthn.models import WebAuthnCredential

from frostproject.signin import (
    factors,
    freshness,
    known,
    pages,
    passkeys,
    record,
    session_pages,
    sessions,
)
from frostproject.signin.attempt import find_attempt
from frostproject.signin.pages import next_url

# Asks for the password again before any change that would give the holder of a stolen session
# lasting access.
#
# These are changes of second factors and of accounts: there a superuser could set a new password or
# create another superuser.

#: The pages that ask, by the names of their addresses; and those that ask where something is done.
ASKING = frozenset(
    {
        "second_factor",
        "auth_user_add",
        "auth_user_change",
        "auth_user_delete",
        "auth_user_password_change",
    }
)
ASKING_TO_ACT = frozenset({"auth_user_changelist"})

AdminView = Callable[..., HttpResponse]


def require_fresh_sign_in(view: AdminView) -> AdminView:
    """``view`` of the admin; users who signed in a while ago are first sent to
    :func:`sign_in_again_page`."""

    @wraps(view)
    def asked(request: HttpRequest, *arguments: Any, **values: Any) -> HttpResponse:
        if not _asks(request) or freshness.is_fresh(request):
            return view(request, *arguments, **values)
        if request.method == "POST":
            messages.warning(request, _("Nothing was changed yet: please do it once more."))
        further = urlencode({"next": request.get_full_path()})
        return HttpResponseRedirect(f"{reverse('admin:sign_in_again')}?{further}")

    return asked


def _asks(request: HttpRequest) -> bool:
    name = request.resolver_match.url_name if request.resolver_match else None
    return name in ASKING or (name in ASKING_TO_ACT and request.method == "POST")


def sign_in_again_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Asks a person who is signed in for the password, or a passkey."""
    user = cast("User", request.user)  # the site requires a signed-in user
    error = ""
    if request.method == "POST":
        if user.check_password(request.POST.get("password", "")):
            find_attempt(request).succeeded = True
            freshness.mark_fresh(request)
            return HttpResponseRedirect(next_url(request))
        record.record_failure(request, user.get_username(), "password, asked again")
        error = _("This password is not right.")
    context = {
        **site.each_context(request),
        "title": _("Your password once more"),
        "error": error,
        "next": next_url(request),
        "has_passkeys": passkeys.can_offer_passkeys(request)
        and WebAuthnCredential.objects.filter(user=user, confirmed=True).exists(),
    }
    return render(request, "admin/second_factor/again.html", context)


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
        return super().admin_view(require_fresh_sign_in(view), cacheable)

    def second_factor(self, request: HttpRequest) -> HttpResponse:
        return pages.own_factors_page(request, self)

    def sign_in_sessions(self, request: HttpRequest, user_pk: int | None = None) -> HttpResponse:
        return session_pages.sessions_page(request, self, user_pk)

    @method_decorator(sensitive_post_parameters("password"))
    def sign_in_again(self, request: HttpRequest) -> HttpResponse:
        return sign_in_again_page(request, self)

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
