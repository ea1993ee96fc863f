"""Tool calls."""

from typing import ClassVar, TypeAlias

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.domain.states import ToolCallState
from agent.models.run import Run, Step


class ToolCall(models.Model):
    """One call of a tool: what it was given, who asked, and what came back.

    A ``pending`` call has no outcome yet although its run may be over: it waits for an
    :class:`agent.models.Approval`, or a long-running tool works on it (in the process
    ``claimed_by``, or somewhere outside where that is empty).
    """

    State: TypeAlias = ToolCallState

    run = models.ForeignKey(Run, models.CASCADE, related_name="tool_calls", verbose_name=_("run"))
    step = models.ForeignKey(
        Step, models.CASCADE, related_name="tool_calls", verbose_name=_("step"), db_index=False
    )
    position = models.PositiveIntegerField(_("position"), default=0)
    call_id = models.CharField(_("call id"), max_length=128)
    tool_name = models.CharField(_("tool"), max_length=128)
    provider_name = models.CharField(_("provider"), max_length=128, blank=True, default="")
    requested_by = models.CharField(
        _("requested by"),
        max_length=64,
        blank=True,
        default="",
        help_text=_("The sender of the message that led to the call."),
    )
    arguments = models.JSONField(_("arguments"), default=dict, blank=True)
    state = models.CharField(
        _("state"), max_length=16, choices=State.choices, default=State.WAITING
    )
    mocked = models.BooleanField(_("mock"), default=False)
    result = models.TextField(
        _("result"), blank=True, default="", help_text=_("What the model was told.")
    )
    structured_content = models.JSONField(_("structured result"), null=True, blank=True)
    error = models.TextField(_("error"), blank=True, default="")
    progress = models.TextField(
        _("progress"),
        blank=True,
        default="",
        help_text=_("What a long-running tool last said of its work."),
    )
    claimed_by = models.CharField(max_length=32, blank=True, default="", editable=False)
    duration_ms = models.PositiveIntegerField(_("duration (ms)"), null=True, blank=True)
    created_at = models.DateTimeField(_("recorded at"))
    # Large values last: SQLite walks over them to reach any column behind.
    full_result = models.TextField(
        _("whole result"),
        blank=True,
        default="",
        help_text=_("Where the model was told only the beginning of it."),
    )
    verdict = models.CharField(  # noqa: DJ001 - SQLite copies a whole table to add another column
        _("verdict"),
        max_length=32,
        null=True,
        blank=True,
        help_text=_("What was decided before the call: allowed, approved, or why it was refused."),
    )
    decided_by = models.CharField(  # noqa: DJ001 - as above
        _("decided by"),
        max_length=200,
        null=True,
        blank=True,
        help_text=_("Whose row or word decided."),
    )

    state_change = models.JSONField(null=True, editable=False)
    """What it changed in the state of its chat: the values ``before`` and ``after``, by name."""
    stopped_by = models.CharField(max_length=150, null=True, editable=False)  # noqa: DJ001
    """The operator who asked that it ends, whatever process works on it; None for nobody."""

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["step", "position"], name="one_call_per_position")
        ]
        indexes: ClassVar = [
            models.Index(fields=["tool_name", "-id"], name="call_tool"),
            models.Index(fields=["state", "-id"], name="call_state"),
            models.Index(fields=["id"], name="call_pending", condition=Q(state="pending")),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.tool_name}"
