"""What an operator decides for the whole installation: one row."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy as _

from tools.live_rows import ConfigVersion, LiveKind, LiveModel, Tracked
from tools.local_time import Clock, known_zones


def check_zone(name: str) -> None:
    """Refuse what is no time zone."""
    if name not in known_zones():
        raise ValidationError(
            gettext("“%s” is no time zone. Write one such as Asia/Shanghai or Europe/London.")
            % name[:50]
        )


class Installation(LiveModel):
    """The one row of the installation. Without it, the machine's time zone counts."""

    live_kind = LiveKind.CLOCK

    ONLY = 1
    """The key of the row."""

    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        validators=[check_zone],
        help_text=_(
            "For times on pages and in prompts, for quiet hours, and for the days and months of "
            "sums, limits and budgets. Empty: the machine’s."
        ),
    )
    changed_on = models.CharField(max_length=10, blank=True, default="", editable=False)
    begun_on = models.CharField(max_length=10, blank=True, default="", editable=False)
    """Both as in :class:`tools.local_time.Clock`."""

    tracked = Tracked(fields=("time_zone",))

    class Meta:
        verbose_name = _("system setting")
        verbose_name_plural = _("system settings")

    def __str__(self) -> str:
        return gettext("System settings")

    def save(self, **options: Any) -> None:
        """With a new zone, the day that has begun goes on until the next midnight there."""
        self.pk = self.ONLY
        with transaction.atomic(using=options.get("using")):
            ConfigVersion.bump(LiveKind.CLOCK)  # before all else: of two who choose, one waits here
            columns = Installation.objects.values_list("time_zone", "changed_on", "begun_on")
            before = Clock(*(columns.filter(pk=self.ONLY).first() or ()))
            if before.zone != self.time_zone:
                clock = before.move_to(self.time_zone, timezone.now())
                self.changed_on, self.begun_on = clock.changed_on, clock.begun_on
            super().save(**options)
