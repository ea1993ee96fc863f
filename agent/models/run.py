"""Runs and their steps."""

from typing import ClassVar, TypeAlias

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.domain.states import RunOrigin, RunState, StepPhase
from agent.models.endpoint import ModelEndpoint
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
    # New columns may be null: SQLite copies a whole table to add others.
    persona = models.CharField(_("persona"), max_length=100, null=True, blank=True)  # noqa: DJ001
    config_version = models.BigIntegerField(
        _("config version"),
        null=True,
        blank=True,
        help_text=_("How often rows had been changed by operators when it began."),
    )
    trial_of = models.ForeignKey(
        Message,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="trials",
        verbose_name=_("asked again for"),
        db_index=False,
        help_text=_("Of a run that sends nothing: the message that was asked again."),
    )
    """Such a run has neither ``session`` nor ``message``: nothing that works on chats finds it."""
    author = models.CharField(_("asked by"), max_length=150, null=True, blank=True)  # noqa: DJ001

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ("-id",)
        indexes: ClassVar = [
            models.Index(fields=["session", "-id"], name="run_session"),
            models.Index(fields=["state", "-id"], name="run_state"),
            models.Index(fields=["origin", "-id"], name="run_origin"),
            models.Index(
                fields=["trial_of"], name="run_trial", condition=Q(trial_of__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk}"


class ToolOffer(models.Model):
    """One distinct set of tool definitions, in order, as models were offered it."""

    digest = models.CharField(max_length=64, unique=True)
    """SHA-256 of the definitions as they are sent, in hexadecimal."""
    created_at = models.DateTimeField(_("recorded at"), auto_now_add=True)
    definitions = models.JSONField(_("definitions"), default=list)

    class Meta:
        verbose_name = _("set of tools")
        verbose_name_plural = _("sets of tools")

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
    # Those that came later stand behind the large values, since columns are only ever added; they
    # may be null, for SQLite copies a whole table to add others.
    endpoint = models.ForeignKey(
        ModelEndpoint,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("model endpoint"),
        db_index=False,
    )
    endpoint_name = models.CharField(_("endpoint"), max_length=100, null=True, blank=True)  # noqa: DJ001
    model = models.CharField(_("model"), max_length=200, null=True, blank=True)  # noqa: DJ001
    cached_tokens = models.PositiveIntegerField(_("cached input tokens"), null=True, blank=True)
    reasoning_tokens = models.PositiveIntegerField(_("reasoning tokens"), null=True, blank=True)
    cost_nano = models.BigIntegerField(_("cost"), null=True, blank=True)
    """Billionths of the currency, at the price of the moment; None where no price is known."""
    currency = models.CharField(_("currency"), max_length=3, null=True, blank=True)  # noqa: DJ001
    offer = models.ForeignKey(
        ToolOffer,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("set of tools"),
        db_index=False,
    )
    parameters = models.JSONField(_("parameters"), null=True, blank=True)
    """The keys of the request's body besides model, messages and tools, in their order."""
    sent = models.JSONField(_("really sent"), null=True, blank=True)
    """The messages of the request, all of them, where they differ from what the steps so far make
    (:mod:`agent.record.runs.requests`): some were dropped or shortened, or the endpoint takes
    another form."""
    attempts = models.JSONField(_("asked before"), null=True, blank=True)
    """Endpoints that did not answer before this one did: name, model, reason and milliseconds."""
    response_rest = models.JSONField(_("rest of the answer"), null=True, blank=True)
    """The body of the answer without the message in ``response``."""

    class Meta:
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        ordering = ("run", "number")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "number"], name="one_step_per_number")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}.{self.number}"
