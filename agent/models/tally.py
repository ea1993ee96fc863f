"""The counts for the limits: how often a sender was answered, and the tokens of each day."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Tally(models.Model):
    """The answers to one ``subject``: a person of an account, a chat, or a person in a chat
    (:mod:`agent.record.sums.tallies`).

    Numbers and not times: a row is written with each answer. Times are seconds since 1970,
    days are those of the installation's time zone.
    """

    subject = models.CharField(max_length=300, unique=True)
    recent = models.TextField(blank=True, default="")
    """The answers of the last minute: ``second:number`` for each second that had any."""
    day = models.CharField(max_length=10, blank=True, default="")
    of_day = models.IntegerField(default=0)
    told_at = models.BigIntegerField(default=0)
    told_on = models.CharField(max_length=10, blank=True, default="")
    silent_until = models.BigIntegerField(default=0)
    touched_at = models.BigIntegerField(default=0, db_index=True)

    class Meta:
        verbose_name = _("answer count")
        verbose_name_plural = _("answer counts")

    def __str__(self) -> str:
        return self.subject
