"""What is on record of accounts: how they signed in, and their second factors.

An app shows six digits, which change every half minute (RFC 6238). Recovery codes are for users who
lost their device: each works once. Of failed sign-ins, what was typed is not kept.
"""

from binascii import unhexlify
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import crypto, timezone
from django.utils.translation import gettext_lazy as _
from django_otp.models import Device, ThrottlingMixin, TimestampMixin
from django_otp.oath import TOTP

from tools.secrets.encryption import DecryptionError, decrypt

if TYPE_CHECKING:
    from django.contrib.auth.models import User

#: Half minutes by which the clock of a phone may be wrong.
TOLERANCE = 1
DIGITS = 6
#: The longest wait after wrong codes in a row. Only someone who knows the password can cause it.
LONGEST_WAIT = timedelta(minutes=15)
CODE_SALT = "frostagent recovery code"


class ThrottledDevice(ThrottlingMixin):  # type: ignore[misc]  # django-otp has no types
    """A device that waits after wrong codes: 1, 2, 4 … seconds, up to :data:`LONGEST_WAIT`."""

    class Meta:
        abstract = True

    def get_throttle_factor(self) -> int:
        return 1

    def locked_until(self) -> datetime | None:
        """When it may be asked again; None for now."""
        if not self.throttling_failure_count or not self.throttling_failure_timestamp:
            return None
        wait = min(timedelta(seconds=2 ** min(self.throttling_failure_count - 1, 20)), LONGEST_WAIT)
        until: datetime = self.throttling_failure_timestamp + wait
        return until if until > timezone.now() else None

    def verify_is_allowed(self) -> tuple[bool, dict[str, Any] | None]:
        until = self.locked_until()
        return (until is None, {"locked_until": until} if until else None)

    def begin_try(self) -> bool:
        """Count a failure, which :meth:`passed` takes back; False for a try that is not to be
        judged.

        It is counted first: of many tries that come at the same moment one is judged.
        """
        seen = {
            "count": self.throttling_failure_count,
            "timestamp": self.throttling_failure_timestamp,
        }
        row = type(self).objects.filter(
            pk=self.pk, **{f"throttling_failure_{name}": value for name, value in seen.items()}
        )
        counted = {
            "throttling_failure_count": self.throttling_failure_count + 1,
            "throttling_failure_timestamp": timezone.now(),
        }
        return self.locked_until() is None and bool(row.update(**counted))

    def passed(self) -> None:
        """The try was right."""
        right = {
            "throttling_failure_count": 0,
            "throttling_failure_timestamp": None,
            "last_used_at": timezone.now(),
        }
        type(self).objects.filter(pk=self.pk).update(**right)


class AuthenticatorApp(ThrottledDevice, TimestampMixin, Device):  # type: ignore[misc]  # as above
    """The secret that server and app share, sealed as other secrets are; a device of django-otp."""

    user: "models.ForeignKey[User, User]"
    sealed_key = models.TextField(help_text="The secret, in hexadecimal, sealed.")
    last_step = models.BigIntegerField(
        default=-1, help_text="The half minute of the last code that was accepted."
    )

    class Meta:
        verbose_name = _("authenticator app")
        verbose_name_plural = _("authenticator apps")
        constraints = (
            models.UniqueConstraint(
                fields=("user",), condition=Q(confirmed=True), name="one_app_of_an_account"
            ),
        )

    def key(self) -> bytes:
        """Raises :class:`tools.secrets.encryption.DecryptionError`."""
        return unhexlify(decrypt(self.sealed_key))

    def verify_token(self, token: str) -> bool:
        """Whether ``token`` is right now and has not been used; no code is accepted twice."""
        try:
            totp = TOTP(self.key(), digits=DIGITS)
        except DecryptionError:
            return False
        if not self.begin_try():
            return False
        totp.time = timezone.now().timestamp()
        is_right = (
            token.isascii()
            and token.isdigit()
            and len(token) == DIGITS
            and totp.verify(int(token), TOLERANCE, self.last_step + 1)
            # Of two who come with the same code at the same moment one is first.
            and bool(
                type(self)
                .objects.filter(pk=self.pk, last_step__lt=totp.t())
                .update(last_step=totp.t())
            )
        )
        if is_right:
            self.passed()
        return is_right


class RecoveryCodes(ThrottledDevice, TimestampMixin, Device):  # type: ignore[misc]  # django-otp has no types
    """Those of one account; a device of django-otp."""

    user: "models.ForeignKey[User, User]"

    class Meta:
        verbose_name = _("set of recovery codes")
        verbose_name_plural = _("sets of recovery codes")
        constraints = (
            models.UniqueConstraint(fields=("user",), name="one_set_of_codes_of_an_account"),
        )

    def verify_token(self, token: str) -> bool:
        """Whether ``token`` is one of them; it is used up then."""
        if not self.begin_try():
            return False
        is_right = bool(self.codes.filter(digest=digest_code(token)).delete()[0])
        if is_right:
            self.passed()
        return is_right


class RecoveryCode(models.Model):
    """One of them. Only its digest is kept, under the installation's secret key; the code itself
    has 50 random bits."""

    device = models.ForeignKey(RecoveryCodes, on_delete=models.CASCADE, related_name="codes")
    digest = models.CharField(max_length=64)

    class Meta:
        verbose_name = _("recovery code")
        verbose_name_plural = _("recovery codes")
        constraints = (
            models.UniqueConstraint(fields=("device", "digest"), name="recovery_code_once"),
        )

    def __str__(self) -> str:
        return f"recovery code {self.pk}"


def digest_code(code: str) -> str:
    """``code``, however it is spaced and in whatever case, as it is stored."""
    plain = "".join(sign for sign in code.casefold() if sign.isalnum())
    return crypto.salted_hmac(CODE_SALT, plain, algorithm="sha256").hexdigest()


class FailedSignIns(models.Model):
    """Those of one hour. Rows of before yesterday are deleted, so there are never more than some
    dozens."""

    hour = models.DateTimeField(unique=True)
    count = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(null=True)
    last_address = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = _("failed sign-ins")
        verbose_name_plural = _("failed sign-ins")

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}: {self.count}"


class SignInRecord(models.Model):
    """How one account signed in last, and what failed since."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_in_record"
    )
    signed_in_at = models.DateTimeField(null=True)
    address = models.CharField(max_length=64, blank=True)
    failed_before = models.PositiveIntegerField(
        default=0, help_text="How often it failed before the last success."
    )
    failed = models.PositiveIntegerField(
        default=0, help_text="How often it failed since the last success."
    )
    failed_at = models.DateTimeField(null=True)
    failed_address = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = _("record of sign-ins")
        verbose_name_plural = _("records of sign-ins")

    def __str__(self) -> str:
        return f"sign-ins of account {self.user_id}"


class SignInSession(models.Model):
    """One browser that is signed in with every factor. Without its row it is signed out.

    The session of Django holds a random token, the row its hash: with the database alone nobody can
    take a session over, and the row stays the same when the session gets another key.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_in_sessions"
    )
    token_hash = models.CharField(max_length=64, unique=True)
    password_mark = models.CharField(
        max_length=16, help_text="Differs once the password was changed, which signs out."
    )
    address = models.CharField(max_length=64, blank=True)
    user_agent = models.CharField(max_length=400, blank=True)
    signed_in_at = models.DateTimeField()
    last_seen_at = models.DateTimeField(help_text="To some minutes.")
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("sign-in session")
        verbose_name_plural = _("sign-in sessions")

    def __str__(self) -> str:
        return f"session {self.pk} of account {self.user_id}"


class SeenAlert(models.Model):
    """That a user has put away what the overview tells of. It is one's own: what one operator has
    seen may be another's to do."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    """Of what was told; what is told anew, or otherwise, has another one."""
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("alert put away")
        verbose_name_plural = _("alerts put away")
        constraints = (models.UniqueConstraint(fields=("user", "digest"), name="alert_seen_once"),)

    def __str__(self) -> str:
        return f"{self.user_id} {self.digest}"
