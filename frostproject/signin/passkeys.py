"""Passkeys (WebAuthn), by django-otp-webauthn: as second factor, or instead of name and password.

Browsers offer them on https pages and on localhost, under a name and not under an address.
"""

import ipaddress
import json
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.urls import reverse
from django_otp_webauthn import exceptions, views
from django_otp_webauthn.helpers import WebAuthnHelper
from django_otp_webauthn.models import WebAuthnCredential

from frostproject.signin import attempt, record

#: Passkeys of one account.
MAX_PASSKEYS = 20
#: Bytes of what a browser sends.
MAX_PASSKEY_BODY = 64 * 2**10


class FreshSignInRequired(exceptions.OTPWebAuthnApiError):  # type: ignore[misc]  # no types
    status_code = 401
    default_code = "sign_in_again"


class TooManyPasskeys(exceptions.OTPWebAuthnApiError):  # type: ignore[misc]  # no types
    status_code = 400
    default_code = "too_many"


def passkey_domain(request: HttpRequest) -> str:
    """The name that passkeys are bound to: the one the page was opened under."""
    return split_domain_port(request.get_host())[0]


def can_offer_passkeys(request: HttpRequest) -> bool:
    """Whether browsers can offer passkeys at this address; the page also asks the browser
    itself."""
    try:
        ipaddress.ip_address(passkey_domain(request).strip("[]"))
    except ValueError:
        return True
    return False


class PasskeyHelper(WebAuthnHelper):  # type: ignore[misc]  # no types
    """The class of the package, for a server that does not know its own host name."""

    def get_allowed_origins(self) -> list[str]:
        """Pages that may use passkeys here: the one asked for, and those of CSRF_TRUSTED_ORIGINS of
        the same name.

        Behind a proxy that ends TLS the server itself does not know that a page is https.
        """
        trusted = [
            origin
            for origin in settings.CSRF_TRUSTED_ORIGINS
            if urlsplit(origin).hostname == passkey_domain(self.request)
        ]
        return [f"{self.request.scheme}://{self.request.get_host()}", *trusted]


class _Json:
    """What all four steps have in common: a body that may be anything ends in an answer."""

    request: HttpRequest

    def _parse_request_data(self, request: HttpRequest) -> dict[str, Any]:
        try:
            data = (
                json.loads(request.body or b"{}") if len(request.body) <= MAX_PASSKEY_BODY else None
            )
        except (ValueError, RecursionError) as error:
            raise exceptions.MalformedRequest from error
        if not isinstance(data, dict):
            raise exceptions.MalformedRequest
        return data


class BeginRegistration(_Json, views.BeginCredentialRegistrationView):  # type: ignore[misc]  # no types
    def check_can_register(self) -> None:
        if not record.is_fresh(self.request):
            raise FreshSignInRequired
        _check_room(self.request)


class CompleteRegistration(_Json, views.CompleteCredentialRegistrationView):  # type: ignore[misc]  # as above
    """Ends what was begun in the same session, however long that took."""

    def check_can_register(self) -> None:
        _check_room(self.request)


def _check_room(request: HttpRequest) -> None:
    if WebAuthnCredential.objects.filter(user=request.user).count() >= MAX_PASSKEYS:
        raise TooManyPasskeys


class BeginSignIn(_Json, views.BeginCredentialAuthenticationView):  # type: ignore[misc]  # as above
    def post(self, *arguments: object, **values: object) -> HttpResponse:
        record.delete_expired_sessions()  # each attempt creates one, also of strangers
        answer: HttpResponse = super().post(*arguments, **values)
        return answer


class CompleteSignIn(_Json, views.CompleteCredentialAuthenticationView):  # type: ignore[misc]  # as above
    def check_device_usable(self, device: WebAuthnCredential) -> None:
        super().check_device_usable(device)
        if not device.user.is_staff:
            raise exceptions.UserDisabled

    def complete_auth(self, device: WebAuthnCredential) -> None:
        if self.request.user.is_authenticated:
            self.request.session.cycle_key()  # as a sign-in does
        super().complete_auth(device)
        record.record_sign_in(self.request, device.user)

    def handle_exception(self, exc: Exception) -> HttpResponse:
        if isinstance(exc, exceptions.OTPWebAuthnApiError):
            user = self.request.user
            record.record_failure(
                self.request, user.get_username() if user.is_authenticated else "", "passkey"
            )
        answer: HttpResponse = super().handle_exception(exc)
        return answer

    def get_success_url(self) -> str:
        return self.get_redirect_url() or reverse("admin:index")

    def post(self, *arguments: object, **values: object) -> HttpResponse:
        answer: HttpResponse = super().post(*arguments, **values)
        if isinstance(self.request.user, User):
            attempt.remember_browser(self.request, answer, self.request.user.get_username())
        return answer
