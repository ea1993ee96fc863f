"""Failed sign-ins, counted; what was typed is not kept."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


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
