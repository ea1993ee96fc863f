"""Asks for the password again before any change that would give the holder of a stolen session
lasting access.

These are changes of second factors and of accounts: there a superuser could set a new password or
create another superuser.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django_otp_webauthn.models import WebAuthnCredential

from frostproject.signin import freshness, passkeys, record
from frostproject.signin.attempt import find_attempt
from frostproject.signin.pages import next_url

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
