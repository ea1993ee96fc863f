"""The second factors of an account: whether there are any, making them, taking them away."""

import secrets
from base64 import b32encode
from urllib.parse import quote, urlencode

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, Q
from django_otp.models import Device
from django_otp_webauthn.models import WebAuthnCredential, WebAuthnUserHandle

from agent.record.ground.statements import Statement
from frostproject.models import DIGITS, AuthenticatorApp, RecoveryCode, RecoveryCodes, digest_code
from tools.secrets.encryption import encrypt

ISSUER = "FrostAgent"
#: Bytes of a new secret: what RFC 4226 recommends.
KEY_BYTES = 20
#: Recovery codes of an account; characters of one code, five bits each.
CODES, CODE_SIGNS = 10, 10
CODE_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


_find_factor = Statement("""
    SELECT EXISTS (
        SELECT 1 FROM frostproject_authenticatorapp WHERE user_id = %(user)s AND confirmed
    ) OR EXISTS (
        SELECT 1 FROM django_otp_webauthn_webauthncredential WHERE user_id = %(user)s AND confirmed
    )
""")


def has_second_factor(user: User | AnonymousUser) -> bool:
    """Whether a password alone does not do for ``user``. One short query."""
    return user.pk is not None and bool(_find_factor.rows(user=user.pk)[0][0])


def second_factor_condition() -> Q:
    """The condition under which an account has a second factor."""
    devices: tuple[type[Model], ...] = (AuthenticatorApp, WebAuthnCredential)
    app, passkey = (
        Exists(device._default_manager.filter(user=OuterRef("pk"), confirmed=True))
        for device in devices
    )
    return Q(app) | Q(passkey)


def begin_authenticator_app(user: User) -> AuthenticatorApp:
    """An app that counts once a code of it was entered; one that was begun before is forgotten."""
    AuthenticatorApp.objects.filter(user=user, confirmed=False).delete()
    begun: AuthenticatorApp = AuthenticatorApp.objects.create(
        user=user, name="app", confirmed=False, sealed_key=encrypt(secrets.token_hex(KEY_BYTES))
    )
    return begun


def format_app_key(app: AuthenticatorApp) -> str:
    """The secret as people type it. Raises :class:`tools.secrets.encryption.DecryptionError`."""
    return b32encode(app.key()).decode().rstrip("=")


def otpauth_address(app: AuthenticatorApp) -> str:
    """The otpauth:// address that apps read from a picture. Raises
    :class:`tools.secrets.encryption.DecryptionError`."""
    values = {"secret": format_app_key(app), "issuer": ISSUER, "digits": DIGITS, "period": 30}
    return f"otpauth://totp/{quote(f'{ISSUER}:{app.user.get_username()}')}?{urlencode(values)}"


def make_recovery_codes(user: User) -> list[str]:
    """Fresh recovery codes, for this once; older ones no longer work."""
    codes = [
        "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_SIGNS)) for _ in range(CODES)
    ]
    with transaction.atomic():
        RecoveryCodes.objects.filter(user=user).delete()
        device = RecoveryCodes.objects.create(user=user, name="recovery codes")
        RecoveryCode.objects.bulk_create(
            RecoveryCode(device=device, digest=digest_code(code)) for code in codes
        )
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def find_accepting_device(user: User, code: str) -> Device | None:
    """The device of ``user`` that ``code`` is right for, at this moment."""
    plain = "".join(code.split())
    kind = AuthenticatorApp if plain.isdigit() else RecoveryCodes
    device = kind.objects.filter(user=user, confirmed=True).first()
    return device if device is not None and device.verify_token(plain) else None


def delete_second_factors(user: User) -> bool:
    """Take away every second factor of ``user``, whose password then does alone; whether there was
    any."""
    with transaction.atomic():
        was_on = has_second_factor(user)
        for kind in (AuthenticatorApp, RecoveryCodes, WebAuthnCredential, WebAuthnUserHandle):
            kind._default_manager.filter(user=user).delete()
    return was_on
