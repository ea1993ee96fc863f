"""Codes for users who lost their device: each works once."""

from typing import TYPE_CHECKING

from django.db import models
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _
from django_otp.models import Device, TimestampMixin

from frostproject.models.authenticator_app import ThrottledDevice

if TYPE_CHECKING:
    from django.contrib.auth.models import User

CODE_SALT = "frostagent recovery code"


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
    return salted_hmac(CODE_SALT, plain, algorithm="sha256").hexdigest()
