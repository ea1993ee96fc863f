"""The pages of the second factor: where it is asked for, and where users set up their own."""

from typing import Any, cast

import segno
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django_otp import login
from django_otp.models import Device
from django_otp_webauthn.models import WebAuthnCredential

from frostproject.models import AuthenticatorApp, RecoveryCode, RecoveryCodes
from frostproject.signin import factors, known, passkeys, record
from tools.secrets.encryption import DecryptionError


def second_factor_check_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Asks for the second factor after the right password."""
    user = request.user
    if not isinstance(user, User) or not user.is_staff or not user.is_active:
        return HttpResponseRedirect(reverse("admin:login"))
    if site.has_permission(request):
        return HttpResponseRedirect(next_url(request))
    error = ""
    if request.method == "POST":
        device = factors.find_accepting_device(user, request.POST.get("code", "")[:100])
        if device is not None:
            return _let_in(request, user, device)
        record.record_failure(request, user.get_username(), "second factor")
        error = _waiting(user) or _(
            "This code is not right. Codes of an app change every 30 seconds; a recovery code "
            "works once."
        )
    context = {
        **site.each_context(request),
        "title": _("Second factor"),
        "error": error,
        "next": next_url(request),
        "has_app": AuthenticatorApp.objects.filter(user=user, confirmed=True).exists(),
        "has_codes": RecoveryCode.objects.filter(device__user=user).exists(),
        "has_passkeys": WebAuthnCredential.objects.filter(user=user, confirmed=True).exists(),
    }
    return render(request, "admin/second_factor/check.html", context)


def _let_in(request: HttpRequest, user: User, device: Device) -> HttpResponse:
    request.session.cycle_key()
    login(request, device)
    record.record_sign_in(request, user)
    if isinstance(device, RecoveryCodes):
        messages.warning(
            request, _("A recovery code was used up. %d are left.") % device.codes.count()
        )
    answer = HttpResponseRedirect(next_url(request))
    known.remember_browser(request, answer, user.get_username())
    return answer


def _waiting(user: User) -> str:
    """The message after too many wrong codes; "" otherwise."""
    kinds = (AuthenticatorApp, RecoveryCodes)
    devices = [
        device for kind in kinds for device in kind.objects.filter(user=user, confirmed=True)
    ]
    untils = [until for device in devices if (until := device.locked_until())]
    if not untils:
        return ""
    seconds: int = max(1, round((max(untils) - timezone.now()).total_seconds()))
    text: str = _(
        "This code is not right, or it came too early after a wrong one. The next one is looked at "
        "in %d seconds."
    )
    return text % seconds


def next_url(request: HttpRequest) -> str:
    """The address where ``request`` continues, if it is on this server."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_safe = url_has_allowed_host_and_scheme(
        wanted, {request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_safe else reverse("admin:index")


def own_factors_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """A person's own second factors."""
    user = cast("User", request.user)  # the site requires a signed-in user
    shown: dict[str, Any] = {}
    if request.method == "POST":
        act = ACTIONS.get(request.POST.get("action", ""))
        shown = act(request, user) if act else {}
        if not shown:
            return HttpResponseRedirect(reverse("admin:second_factor"))
    context = {
        **site.each_context(request),
        "title": _("Second factor"),
        "is_on": factors.has_second_factor(user),
        "app": AuthenticatorApp.objects.filter(user=user, confirmed=True).first(),
        "passkeys": WebAuthnCredential.objects.filter(user=user, confirmed=True).order_by("pk"),
        "codes_left": RecoveryCode.objects.filter(device__user=user).count(),
        "is_possible": passkeys.can_offer_passkeys(request),
        **_begun(user),
        **shown,
    }
    return render(
        request, "admin/second_factor/own.html", context
    )  # which admin_view has no cache keep


def _begun(user: User) -> dict[str, Any]:
    """The app that is being set up: its secret is shown until a code of it was entered, and never
    again."""
    app = AuthenticatorApp.objects.filter(user=user, confirmed=False).first()
    if app is None:
        return {}
    try:
        picture = segno.make(factors.otpauth_address(app)).svg_inline(
            scale=5, border=3, dark="#000", light="#fff"
        )
    except DecryptionError:
        app.delete()
        return {}
    return {"begun": app, "picture": mark_safe(picture), "key": factors.format_app_key(app)}  # noqa: S308


def _begin_app(request: HttpRequest, user: User) -> dict[str, Any]:
    factors.begin_authenticator_app(user)
    return {}


def _confirm_app(request: HttpRequest, user: User) -> dict[str, Any]:
    app = AuthenticatorApp.objects.filter(user=user, confirmed=False).first()
    if app is None:
        return {}
    if not app.verify_token("".join(request.POST.get("code", "")[:100].split())):
        return {
            "error": _(
                "This code is not right. Enter the six digits that the app shows now; the phone's "
                "clock has to be right."
            )
        }
    AuthenticatorApp.objects.filter(user=user, confirmed=True).delete()
    app.refresh_from_db()
    app.confirmed = True
    app.save(update_fields=["confirmed"])
    login(request, app)
    record.log_factor_change(user, "an app was set up")
    return {"new_codes": factors.make_recovery_codes(user)}


def _new_codes(request: HttpRequest, user: User) -> dict[str, Any]:
    if not factors.has_second_factor(user):
        return {}
    record.log_factor_change(user, "new recovery codes were made")
    codes = factors.make_recovery_codes(user)
    if isinstance(
        getattr(request.user, "otp_device", None), RecoveryCodes
    ):  # of the old ones, which let this session in
        _stay(request, user)
    return {"new_codes": codes}


def _remove_app(request: HttpRequest, user: User) -> dict[str, Any]:
    return _removed(request, user, AuthenticatorApp.objects.filter(user=user))


def _remove_passkey(request: HttpRequest, user: User) -> dict[str, Any]:
    number = request.POST.get("passkey", "")
    chosen = int(number) if number.isascii() and number.isdigit() and len(number) <= 18 else 0
    return _removed(request, user, WebAuthnCredential.objects.filter(user=user, pk=chosen))


def _removed(request: HttpRequest, user: User, devices: Any) -> dict[str, Any]:
    if devices.delete()[0]:
        record.log_factor_change(user, "one was taken away")
        messages.success(request, _("It was taken away."))
    factors.delete_unused_codes(user)
    _stay(request, user)
    return {}


def _stay(request: HttpRequest, user: User) -> None:
    """Keep this session past the device it was let in with."""
    left = [
        *AuthenticatorApp.objects.filter(user=user, confirmed=True),
        *WebAuthnCredential.objects.filter(user=user, confirmed=True),
    ]
    if left:
        login(request, left[0])


ACTIONS = {
    "begin_app": _begin_app,
    "confirm_app": _confirm_app,
    "new_codes": _new_codes,
    "remove_app": _remove_app,
    "remove_passkey": _remove_passkey,
}
