"""An app that shows six digits, which change every half minute (RFC 6238)."""

from binascii import unhexlify
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django_otp.models import Device, ThrottlingMixin, TimestampMixin
from django_otp.oath import TOTP

from tools.secrets.encryption import DecryptionError, decrypt

#: Half minutes by which the clock of a phone may be wrong.
TOLERANCE = 1
DIGITS = 6
#: The longest wait after wrong codes in a row. Only someone who knows the password can cause it.
LONGEST_WAIT = timedelta(minutes=15)

if TYPE_CHECKING:
    from django.contrib.auth.models import User


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
