"""The rows that configure single tools."""

from collections.abc import Collection
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Value
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.models.choices import AllowedCallers, ApprovalMode, ToolScope, ToolVisibility
from tools.models.other_chats import check_other_chats
from tools.models.row_validation import check_descriptions, check_ids, parse_ids
from tools.text.placeholders import check_mock_template

MOST_CALLS = 10_000
"""Calls per minute that a row can set as a limit."""


class ToolConfig(LiveModel):
    """How one tool behaves: the operator's word over the tool's own declaration."""

    live_kind = LiveKind.TOOLS

    name = models.CharField(_("name"), max_length=128, unique=True, editable=False)
    provider_name = models.CharField(_("provider"), max_length=128, editable=False, default="")
    enabled = models.BooleanField(
        _("enabled"),
        default=True,
        help_text=_("A disabled tool is neither offered to the model nor callable."),
    )
    visibility = models.CharField(
        _("visibility"),
        max_length=16,
        choices=ToolVisibility,
        default=ToolVisibility.VISIBLE,
        help_text=_(
            "A deferred tool is only named to the model, which finds it with tool_search and keeps "
            "it in that chat;"
            " a hidden one is not offered at all, and a model that remembers it cannot call it."
        ),
    )
    pinned = models.BooleanField(
        _("pinned"),
        default=False,
        help_text=_(
            "Always offered to the model in full and never deferred, however many tools there are."
        ),
    )
    scope = models.CharField(
        _("scope"),
        max_length=16,
        choices=ToolScope,
        default=ToolScope.ALL,
        help_text=_("The chats in which the tool is offered and callable."),
    )
    allowed = models.CharField(
        _("who may use it"),
        max_length=16,
        choices=AllowedCallers,
        default=AllowedCallers.EVERYONE,
        help_text=_(
            "Judged by the sender of the message that led to the call. Owners of the bot always "
            "may."
        ),
    )
    allowed_ids = models.TextField(
        _("listed ids"),
        blank=True,
        default="",
        help_text=_("The listed people or groups, separated by commas, spaces or line breaks."),
    )
    other_chats = models.TextField(
        _("other chats"),
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Of send_message: the other chats of the same account that it may send to, one a "
            "line, each with those for whom: group:123456 owners, or private:20002 everyone, or "
            "group:123456 30003 30004."
        ),
    )
    requires_approval = models.CharField(
        _("needs approval"),
        max_length=16,
        choices=ApprovalMode,
        default=ApprovalMode.OWN,
        help_text=_("Which calls wait until an owner approves them."),
    )
    calls_per_minute_person = models.PositiveIntegerField(
        _("calls per minute and person"),
        default=0,
        validators=[MaxValueValidator(MOST_CALLS)],
        help_text=_("0: no limit."),
    )
    calls_per_minute_chat = models.PositiveIntegerField(
        _("calls per minute and chat"),
        default=0,
        validators=[MaxValueValidator(MOST_CALLS)],
        help_text=_("0: no limit."),
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
    parameter_descriptions = models.JSONField(
        _("descriptions of arguments"),
        blank=True,
        default=dict,
        help_text=_(
            'What the model is told about arguments instead of the tool\'s own words: {"name": '
            '"description"}.'
        ),
    )
    timeout_seconds = models.PositiveIntegerField(
        _("time limit (seconds)"),
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text=_("A call that takes longer is stopped and reported to the model as failed."),
    )
    parameter_names = models.JSONField(
        _("arguments"),
        null=True,
        default=None,
        editable=False,
        help_text=_("What {name} may stand for in the mock value."),
    )
    declaration = models.JSONField(
        _("declaration"),
        default=dict,
        editable=False,
        help_text=_(
            "What the tool says of itself: title, description, schemas, icons and annotation."
        ),
    )
    fingerprint = models.CharField(
        max_length=100, blank=True, default="", db_default=Value(""), editable=False
    )
    """The fingerprint of the current declaration, see :mod:`tools.registry.declaration_review`;
    empty when no review is needed."""
    looked_at = models.CharField(
        _("looked at"), max_length=100, blank=True, default="", db_default=Value(""), editable=False
    )
    """The fingerprint of the reviewed declaration; empty: not reviewed."""
    looked_declaration = models.JSONField(null=True, default=None, blank=True, editable=False)
    """The reviewed declaration, to be compared with the current one."""
    created_at = models.DateTimeField(_("first seen"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    tracked = Tracked(
        fields=(
            *("enabled", "visibility", "pinned", "scope", "allowed", "allowed_ids", "looked_at"),
            *(
                "other_chats",
                "requires_approval",
                "calls_per_minute_person",
                "calls_per_minute_chat",
            ),
            *("mock_enabled", "mock_value", "description", "parameter_descriptions"),
            "timeout_seconds",
        )
    )

    class Meta:
        verbose_name = _("tool config")
        verbose_name_plural = _("tool configs")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """The checks that need more than one field. A field in ``exclude`` is never complained
        of."""
        errors: dict[str, Any] = {}
        try:
            super().clean_fields(exclude=exclude)
        except ValidationError as error:
            errors = error.update_error_dict(errors)
        for field, lines in self._errors().items():
            if lines and field not in (exclude or ()):
                errors[field] = lines
        if errors:
            raise ValidationError(errors)

    def _errors(self) -> dict[str, list[str]]:
        return {
            "mock_value": check_mock_template(self.mock_value, self.parameter_names),
            "parameter_descriptions": check_descriptions(
                self.parameter_descriptions, self.parameter_names
            ),
            "allowed_ids": self._id_errors(),
            "other_chats": check_other_chats(self.other_chats),
        }

    def _id_errors(self) -> list[str]:
        if self.allowed in (AllowedCallers.PEOPLE, AllowedCallers.GROUPS) and not parse_ids(
            self.allowed_ids
        ):
            return [
                gettext(
                    "List at least one id: without any, nobody but the owners may use the tool."
                )
            ]
        return check_ids(self.allowed_ids)
