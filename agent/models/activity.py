"""Sums of what happened, for charts: kept up to date in the transactions that they count."""

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.models.session import ChatSession

#: Upper bounds of the columns of answer times, in seconds; the last column has none.
ANSWER_SECONDS = (1, 2, 3, 5, 8, 13, 20, 30, 60, 120)
#: The hour of a row that holds a whole day.
WHOLE_DAY = -1


def _count() -> "models.PositiveIntegerField[Any, Any]":
    return models.PositiveIntegerField(default=0, db_default=0)


class ActivitySum(models.Model):
    """What happened in one chat in one hour, or in one day, of the installation's time zone."""

    day = models.CharField(_("day"), max_length=10)
    hour = models.SmallIntegerField(_("hour"), default=WHOLE_DAY)
    session = models.ForeignKey(
        ChatSession, models.CASCADE, related_name="+", verbose_name=_("chat session")
    )
    received = _count()
    addressed = _count()
    """Messages that were to be answered."""
    answered = _count()
    failed = _count()
    """Messages whose answer failed."""
    sent = _count()
    """Outgoing messages that the client confirmed."""
    unsent = _count()
    """Outgoing messages that failed."""
    unknown = _count()
    """Outgoing messages of unknown outcome."""
    runs = _count()
    failed_runs = _count()
    tool_calls = _count()
    failed_calls = _count()
    within_1 = _count()
    """Answers that were sent within so many seconds of the message, see
    :data:`ANSWER_SECONDS`."""
    within_2 = _count()
    within_3 = _count()
    within_5 = _count()
    within_8 = _count()
    within_13 = _count()
    within_20 = _count()
    within_30 = _count()
    within_60 = _count()
    within_120 = _count()
    later = _count()

    class Meta:
        verbose_name = _("activity")
        verbose_name_plural = _("activity")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["day", "hour", "session"], name="one_activity_sum")
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.session_id}"


class ToolUse(models.Model):
    """How often one tool was called in one chat in one day."""

    day = models.CharField(_("day"), max_length=10)
    session = models.ForeignKey(
        ChatSession, models.CASCADE, related_name="+", verbose_name=_("chat session")
    )
    tool = models.CharField(_("tool"), max_length=200)
    calls = _count()
    failures = _count()

    class Meta:
        verbose_name = _("use of a tool")
        verbose_name_plural = _("use of tools")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["day", "session", "tool"], name="one_tool_use")
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.tool}"
