"""Sums of what models cost, and the budgets that bound them."""

from typing import Any, ClassVar

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.budgets import BudgetAction, BudgetPeriod, SpendKind, name_budget
from agent.models.endpoint import NO_CONTROLS, ModelEndpoint
from tools.live_rows import LiveKind, LiveModel, Tracked


class SpendSum(models.Model):
    """What was spent on one ``subject`` in one day of the installation's time zone, in one
    currency ("" for calls without a price)."""

    day = models.CharField(_("day"), max_length=10)
    kind = models.CharField(_("kind"), max_length=8, choices=SpendKind.choices)
    subject = models.CharField(_("subject"), max_length=300, blank=True, default="")
    currency = models.CharField(_("currency"), max_length=3, blank=True, default="")
    calls = models.BigIntegerField(_("model calls"), default=0)
    input_tokens = models.BigIntegerField(_("input tokens"), default=0)
    cached_tokens = models.BigIntegerField(_("cached input tokens"), default=0)
    output_tokens = models.BigIntegerField(_("output tokens"), default=0)
    reasoning_tokens = models.BigIntegerField(_("reasoning tokens"), default=0)
    cost_nano = models.BigIntegerField(_("cost"), default=0)
    """Billionths of the currency."""

    class Meta:
        verbose_name = _("spending")
        verbose_name_plural = _("spending")
        ordering = ("-day", "kind", "subject")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["day", "kind", "subject", "currency"], name="one_sum_per_day"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["kind", "subject", "day"], name="spend_subject"),
            models.Index(fields=["kind", "day"], name="spend_kind_day"),
        ]

    def __str__(self) -> str:
        return " ".join(filter(None, (self.day, self.get_kind_display(), self.subject)))


class Budget(LiveModel):
    """How much may be spent in a day or a month. Without a ``subject`` each one of the kind has
    it for itself."""

    live_kind = LiveKind.BUDGETS

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[NO_CONTROLS])
    enabled = models.BooleanField(_("enabled"), default=True)
    kind = models.CharField(
        _("on"), max_length=8, choices=SpendKind.choices, default=SpendKind.TOTAL
    )
    subject = models.CharField(
        _("which"),
        max_length=300,
        blank=True,
        default="",
        help_text=_("Empty: each one for itself."),
    )
    period = models.CharField(
        _("period"), max_length=8, choices=BudgetPeriod.choices, default=BudgetPeriod.DAY
    )
    limit: "models.DecimalField[Any, Any]" = models.DecimalField(
        _("limit"), max_digits=20, decimal_places=4, validators=[MinValueValidator(0)]
    )
    unit = models.CharField(
        _("unit"),
        max_length=8,
        default="CNY",
        validators=[
            RegexValidator(r"^([A-Z]{3}|tokens)\Z", _("A currency such as CNY, or tokens."))
        ],
        help_text=_("A currency such as CNY, or tokens."),
    )
    at_limit = models.CharField(
        _("when too little is left"),
        max_length=8,
        choices=BudgetAction.choices,
        default=BudgetAction.OWNERS,
    )
    cheaper = models.ForeignKey(
        ModelEndpoint,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("other endpoint"),
        help_text=_("The one that answers then."),
    )
    environment = models.CharField(
        max_length=16, blank=True, default="", db_default="", editable=False
    )
    """The variable of the environment that it mirrors, if any."""

    tracked = Tracked(
        fields=("name", "enabled", "kind", "subject", "period", "limit", "unit", "at_limit")
    )

    class Meta:
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        ordering = ("name",)

    def __str__(self) -> str:
        return name_budget(self.name)


class BudgetNotice(models.Model):
    """That owners were told of a budget in a period: at 80 or at 100 percent."""

    budget = models.ForeignKey(Budget, models.CASCADE, related_name="notices")
    subject = models.CharField(max_length=300, blank=True, default="")
    period_start = models.CharField(max_length=10)
    percent = models.PositiveIntegerField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("notice of a budget")
        verbose_name_plural = _("notices of budgets")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["budget", "subject", "period_start", "percent"], name="one_budget_notice"
            )
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} {self.period_start} {self.percent}"


class BudgetStop(models.Model):
    """That a budget turned ``subject`` away in a period, and the smallest call that it did not
    allow, in its unit."""

    budget = models.ForeignKey(Budget, models.CASCADE, related_name="stops")
    subject = models.CharField(max_length=300, blank=True, default="")
    period_start = models.CharField(max_length=10)
    needed = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("end of a budget")
        verbose_name_plural = _("ends of budgets")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["budget", "subject"], name="one_budget_stop")
        ]

    def __str__(self) -> str:
        return f"{self.budget_id} {self.period_start} {self.subject}"
