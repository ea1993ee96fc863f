"""Where alerts go, and what was told there."""

from collections.abc import Mapping
from typing import Any

from django.db import models
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.manners import parse_quiet_hours
from agent.domain.states import RouteKind
from agent.models.endpoint import NO_CONTROLS
from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.secrets.encryption import decrypt, encrypt
from tools.secrets.masked import mask_value


class AlertRoute(LiveModel):
    """One place that alerts are told to. Its address is sealed: it holds keys."""

    live_kind = LiveKind.ALERT_ROUTES

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[NO_CONTROLS])
    enabled = models.BooleanField(_("enabled"), default=True)
    kind = models.CharField(
        _("goes by"), max_length=16, choices=RouteKind.choices, default=RouteKind.WEBHOOK
    )
    sealed_address = models.TextField(editable=False, blank=True, default="")
    alerts = models.JSONField(
        _("alerts"), default=list, blank=True, help_text=_("None chosen: all.")
    )
    quiet_hours = models.TextField(
        _("quiet hours"),
        blank=True,
        default="",
        help_text=_("One a line: 23:00-07:30. What still holds at their end is told then."),
    )
    outcome = models.CharField(max_length=16, blank=True, default="", editable=False)
    """A :class:`agent.domain.alerts.RouteOutcome`."""
    outcome_at = models.DateTimeField(null=True, editable=False)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    #: Kind and address change together, so neither is taken back alone.
    tracked = Tracked(
        fields=("name", "enabled", "alerts", "quiet_hours"),
        masked={"kind": (_("goes by"), str), "address": (_("address"), mask_value)},
    )

    class Meta:
        verbose_name = _("alert route")
        verbose_name_plural = _("alert routes")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def address(self) -> str:
        """Raises :class:`tools.secrets.encryption.DecryptionError` when it has to be entered
        again."""
        return decrypt(self.sealed_address) if self.sealed_address else ""

    @address.setter
    def address(self, text: str) -> None:
        self.sealed_address = encrypt(text) if text else ""

    def find_problems(self) -> Mapping[str, list[str]]:
        try:
            parse_quiet_hours(self.quiet_hours)
        except ValueError as error:
            words = gettext("“%s” is not like 23:00-07:30.") % error
            return {"quiet_hours": [words]}
        return {}


class AlertNotice(models.Model):
    """What a route was told of one alert: claimed here before it is sent, so that it is sent
    once."""

    route = models.ForeignKey(AlertRoute, models.CASCADE, related_name="notices")
    key = models.CharField(max_length=300)
    """:attr:`agent.domain.alerts.FoundAlert.key`."""
    found: "models.JSONField[Any, Any]" = models.JSONField(default=dict)
    """The alert as it was told, for the words of its end."""
    first_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)
    """Since when it is not there any more."""
    told_at = models.DateTimeField(null=True)
    """When it was told; None for one whose end was told, or that was not told."""
    sent: "models.JSONField[Any, Any]" = models.JSONField(default=list)
    """When something was sent in the last hour, in seconds since 1970."""
    not_before = models.DateTimeField(null=True)
    """After one that surely did not arrive."""

    class Meta:
        verbose_name = _("alert told")
        verbose_name_plural = _("alerts told")
        constraints = (models.UniqueConstraint(fields=("route", "key"), name="alert_notice_once"),)

    def __str__(self) -> str:
        return f"{self.route_id} {self.key}"
