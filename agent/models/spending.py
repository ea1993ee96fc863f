"""What models cost."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Spending(models.Model):
    """The tokens of one ``day`` of the installation's time zone, of all model calls of all
    processes."""

    day = models.CharField(max_length=10, primary_key=True)
    tokens = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("tokens of a day")
        verbose_name_plural = _("tokens of days")

    def __str__(self) -> str:
        return f"{self.day}: {self.tokens}"
