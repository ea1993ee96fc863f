"""The rows that configure tools: what the admin edits and the next message obeys."""

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.db.models import F
from django.utils.translation import gettext_lazy as _


class ToolConfigQuerySet(models.QuerySet["ToolConfig"]):
    """Changes made in bulk count as changes too."""

    def update(self, **values: Any) -> int:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump()
            return super().update(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump()
            return super().delete()

    # Django's own mark: without it ``ToolConfig.objects.delete()`` would empty the table.
    delete.queryset_only = True  # type: ignore[attr-defined]

    def bulk_create(self, *args: Any, **options: Any) -> list["ToolConfig"]:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump()
            return super().bulk_create(*args, **options)


class ToolConfig(models.Model):
    """How one tool behaves: the operator's word over the tool's own declaration."""

    name = models.CharField(_("name"), max_length=128, unique=True, editable=False)
    provider_name = models.CharField(_("provider"), max_length=128, editable=False, default="")
    enabled = models.BooleanField(
        _("enabled"),
        default=True,
        help_text=_("A disabled tool is neither offered to the model nor callable."),
    )
    mock_enabled = models.BooleanField(
        _("mock"),
        default=False,
        help_text=_("Answer every call with the mock value below instead of running the tool."),
    )
    mock_value = models.TextField(
        _("mock value"),
        blank=True,
        default="",
        help_text=_("{name} stands for that argument of the call; {{ and }} are plain braces."),
    )
    description = models.TextField(
        _("description"),
        blank=True,
        default="",
        help_text=_("What the model is told about the tool. Empty: the tool's own description."),
    )
    timeout_seconds = models.PositiveIntegerField(
        _("time limit (seconds)"),
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text=_("A call that takes longer is stopped and reported to the model as failed."),
    )
    parameter_names = models.JSONField(
        _("arguments"), null=True, default=None, editable=False, help_text=_("What {name} may stand for in the mock value.")
    )
    created_at = models.DateTimeField(_("first seen"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    objects = ToolConfigQuerySet.as_manager()

    class Meta:
        verbose_name = _("tool config")
        verbose_name_plural = _("tool configs")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def save(self, **options: Any) -> None:
        with transaction.atomic(using=options.get("using")):
            super().save(**options)
            ConfigVersion.bump()

    def delete(self, using: Any = None, keep_parents: bool = False) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=using):
            ConfigVersion.bump()
            return super().delete(using=using, keep_parents=keep_parents)


class ConfigVersion(models.Model):
    """One row whose number grows with every change of a tool config.

    Every process compares it before each message, so that a change made in one
    process is obeyed by all of them without a message bus.
    """

    number = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("config version")
        verbose_name_plural = _("config versions")

    def __str__(self) -> str:
        return str(self.number)

    @classmethod
    def bump(cls) -> None:
        if not cls.objects.filter(pk=1).update(number=F("number") + 1):
            cls.objects.get_or_create(pk=1, defaults={"number": 1})

    @classmethod
    def current(cls) -> int:
        return cls.objects.filter(pk=1).values_list("number", flat=True).first() or 0
