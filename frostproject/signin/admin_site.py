"""The admin, with a second factor for those who have one.

Its pages: where the second factor is asked for, where users set up their own, and where they see
where they are signed in, and end it; superusers that of everybody.
"""

import re
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, cast

import segno
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import decorators, http, timezone
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _, ngettext
from django.views.decorators import cache, csrf, debug
from django_otp import login
from django_otp.models import Device
from django_otp_webauthn.models import WebAuthnCredential

from frostproject.models import AuthenticatorApp, RecoveryCode, RecoveryCodes, SignInSession
from frostproject.signin import attempt, factors, passkeys, record
from frostproject.signin.attempt import find_attempt
from tools.secrets.encryption import DecryptionError

#: Sessions that a page shows.
MOST_SHOWN = 100


def sessions_page(
    request: HttpRequest, site: AdminSite, user_pk: int | None = None
) -> HttpResponse:
    """One's own sessions, or those of the account ``user_pk``, for superusers alone."""
    person, reader = request.user, request.user
    if user_pk is not None and user_pk != reader.pk:
        if not getattr(reader, "is_superuser", False):
            raise Http404
        person = get_object_or_404(User, pk=user_pk)
    assert isinstance(person, User)  # noqa: S101 - the site lets nobody else in
    if request.method == "POST":
        _end(request, person)
        return HttpResponseRedirect(request.path)
    is_own = person.pk == reader.pk
    context = {
        **site.each_context(request),
        "title": _("Sign-in sessions"),
        "subtitle": None if is_own else person.get_username(),
        "person": person,
        "is_own": is_own,
        "lacks_factor": is_own and not factors.has_second_factor(person),
        "sessions": list_sessions(request, person),
    }
    return render(request, "admin/sign_in_sessions.html", context)


def list_sessions(request: HttpRequest, person: User) -> list[dict[str, Any]]:
    """The sessions of ``person`` as pages show them, the one of ``request`` first."""
    own = record.own_session(request)
    rows = [
        {
            "row": row,
            "browser": describe_browser(row.user_agent),
            "is_recent": timezone.now() - row.last_seen_at < 2 * record.SEEN_STEP,
            "is_this": own is not None and row.pk == own.pk,
        }
        for row in record.live_sessions(person)[:MOST_SHOWN]
    ]
    return sorted(rows, key=lambda one: not one["is_this"])


def _end(request: HttpRequest, person: User) -> None:
    """End the session that the form names, or all but the one of ``request``."""
    own = record.own_session(request)
    others = SignInSession.objects.filter(user=person).exclude(pk=own.pk if own else 0)
    if request.POST.get("action") == "end":
        others = others.filter(pk=_chosen(request, "session"))
    elif request.POST.get("action") != "end_others":
        return
    count = record.end_sessions(others)
    if count:
        record.log_session_end(person, request.user.get_username(), count)
    text = ngettext("%d session was ended.", "%d sessions were ended.", count) % count
    messages.add_message(request, messages.SUCCESS if count else messages.INFO, text)


def _chosen(request: HttpRequest, name: str) -> int:
    """The number of the row that the form names; 0, which no row has, for none."""
    number = request.POST.get(name, "")
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 18 else 0


# Which browser a User-Agent is of, in the words that people know it by. Pure.

#: The first that is found counts: most browsers also name those that they want to be taken for.
BROWSERS = (
    ("Edge", re.compile(r"\bEdg(?:e|A|iOS)?/")),
    ("Opera", re.compile(r"\bOPR/")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/")),
    ("WeChat", re.compile(r"\bMicroMessenger/")),
    ("QQ Browser", re.compile(r"\bM?QQBrowser/")),
    ("QQ", re.compile(r"\bQQ/")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/")),
    ("Chrome", re.compile(r"\b(?:Chrome|CriOS|HeadlessChrome)/")),
    ("Safari", re.compile(r"\bVersion/[\d.]+.* Safari/")),
)
SYSTEMS = (
    ("HarmonyOS", re.compile(r"\b(?:HarmonyOS|OpenHarmony)\b")),
    ("Windows", re.compile(r"\bWindows NT\b")),
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Android", re.compile(r"\bAndroid\b")),
    ("macOS", re.compile(r"\bMac OS X\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("Linux", re.compile(r"\bLinux\b")),
)


def describe_browser(user_agent: str) -> str:
    """Such as ``Firefox · Windows``; "" for what is no known browser."""
    found = [
        next((name for name, sign in attempt if sign.search(user_agent)), "")
        for attempt in (BROWSERS, SYSTEMS)
    ]
    return " · ".join(filter(None, found)) if found[0] else ""


@cache.never_cache
@csrf.csrf_protect
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
    attempt.remember_browser(request, answer, user.get_username())
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
    is_safe = http.url_has_allowed_host_and_scheme(
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


def _remove(request: HttpRequest, user: User) -> dict[str, Any]:
    """The app, or the passkey that the form names."""
    devices: Any = AuthenticatorApp.objects.filter(user=user)
    if request.POST.get("action") == "remove_passkey":
        devices = WebAuthnCredential.objects.filter(user=user, pk=_chosen(request, "passkey"))
    if devices.delete()[0]:
        record.log_factor_change(user, "one was taken away")
        messages.success(request, _("It was taken away."))
    if not factors.has_second_factor(user):  # recovery codes are for getting past one
        RecoveryCodes.objects.filter(user=user).delete()
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
    "remove_app": _remove,
    "remove_passkey": _remove,
}


# Asks for the password again before any change that would give the holder of a stolen session
# lasting access, and before a download of everything.
#
# These are changes of second factors and of accounts: there a superuser could set a new password or
# create another superuser.

#: The pages that ask, by the names of their addresses; and those that ask where something is done.
ASKING = frozenset(
    {
        "backup",
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
    def asked(request: HttpRequest, *arguments: object, **values: object) -> HttpResponse:
        name = request.resolver_match.url_name if request.resolver_match else None
        asks = name in ASKING or (name in ASKING_TO_ACT and request.method == "POST")
        if not asks or record.is_fresh(request):
            return view(request, *arguments, **values)
        if request.method == "POST":
            messages.warning(request, _("Nothing was changed yet: please do it once more."))
        further = http.urlencode({"next": request.get_full_path()})
        return HttpResponseRedirect(f"{reverse('admin:sign_in_again')}?{further}")

    return asked


@debug.sensitive_post_parameters("password")
def sign_in_again_page(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Asks a person who is signed in for the password, or a passkey."""
    user = cast("User", request.user)  # the site requires a signed-in user
    error = ""
    if request.method == "POST":
        if user.check_password(request.POST.get("password", "")):
            find_attempt(request).succeeded = True
            record.mark_fresh(request)
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
            and not record.has_ended(request)
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
        again, check, factors_page, sessions = (
            partial(page, site=self)
            for page in (
                sign_in_again_page,
                second_factor_check_page,
                own_factors_page,
                sessions_page,
            )
        )
        own = [
            path("sign-in-again/", self.admin_view(again), name="sign_in_again"),
            path("second-factor/", self.admin_view(factors_page), name="second_factor"),
            path("sign-in-sessions/", self.admin_view(sessions), name="sign_in_sessions"),
            path(
                "sign-in-sessions/<int:user_pk>/",
                self.admin_view(sessions),
                name="sign_in_sessions_of",
            ),
            path("second-factor/check/", check, name="second_factor_check"),
            path("passkeys/begin/", csrf.csrf_protect(begin), name="passkey_begin"),
            path("passkeys/complete/", csrf.csrf_protect(complete), name="passkey_complete"),
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

    @decorators.method_decorator(cache.never_cache)
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
                + (f"?{http.urlencode({'next': further})}" if further else "")
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
            attempt.remember_browser(request, answer, user.get_username())
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
