"""Runs and their steps."""

from typing import ClassVar, TypeAlias

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.states import RunOrigin, RunState, StepPhase
from agent.models.message import Message
from agent.models.process import claim_number_field, place_field
from agent.models.session import ChatSession


class Run(models.Model):
    """Everything done for one message, from the first model call to the final answer."""

    Origin: TypeAlias = RunOrigin

    State: TypeAlias = RunState

    session = models.ForeignKey(
        ChatSession,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="runs",
        verbose_name=_("chat session"),
        db_index=False,
    )
    message = models.ForeignKey(
        Message,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="runs",
        verbose_name=_("message answered"),
    )
    parent = models.ForeignKey(
        "ToolCall",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="agent_runs",
        verbose_name=_("tool call it was made for"),
        help_text=_("Of a run of another agent: the call that set it off."),
    )
    claimed_by = models.CharField(max_length=32, blank=True, default="", editable=False)
    claim_number = claim_number_field()
    place = place_field()
    origin = models.CharField(
        _("origin"), max_length=16, choices=Origin.choices, default=Origin.CHAT
    )
    state = models.CharField(
        _("state"), max_length=16, choices=State.choices, default=State.RUNNING
    )
    model = models.CharField(_("model"), max_length=200, blank=True, default="")
    final_text = models.TextField(_("final answer"), blank=True, default="")
    error = models.TextField(_("error"), blank=True, default="")
    notes = models.JSONField(
        _("notes"), default=list, blank=True, help_text=_("What was left out or limited, and why.")
    )
    model_calls = models.PositiveIntegerField(_("model calls"), default=0)
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    started_at = models.DateTimeField(_("started"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ("-id",)
        indexes: ClassVar = [
            models.Index(fields=["session", "-id"], name="run_session"),
            models.Index(fields=["state", "-id"], name="run_state"),
            models.Index(fields=["origin", "-id"], name="run_origin"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk}"


class Step(models.Model):
    """One model call of a run.

    ``request`` holds the messages that were added since the step before, so that
    the requests of a run, one after the other, are exactly what the model was sent.
    A step of the timing gate stands for itself and holds all it was sent.
    """

    Phase: TypeAlias = StepPhase

    run = models.ForeignKey(
        Run, models.CASCADE, related_name="steps", verbose_name=_("run"), db_index=False
    )
    number = models.PositiveIntegerField(_("number"))
    phase = models.CharField(_("phase"), max_length=8, choices=Phase.choices, default=Phase.ACTION)
    finish_reason = models.CharField(_("finish reason"), max_length=64, blank=True, default="")
    error = models.TextField(_("error"), blank=True, default="")
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    latency_ms = models.PositiveIntegerField(_("latency (ms)"), default=0)
    created_at = models.DateTimeField(_("recorded at"))
    # Large values last: SQLite walks over them to reach any column behind.
    request = models.JSONField(_("sent to the model"), default=list)
    tools = models.JSONField(_("tools offered"), default=list, blank=True)
    response = models.JSONField(_("the model's answer"), null=True, blank=True)

    class Meta:
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        ordering = ("run", "number")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "number"], name="one_step_per_number")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}.{self.number}"
