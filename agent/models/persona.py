"""Personas and agents, and where each persona answers."""

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.persona import FixedLanguage, PersonaKind, ToolChoice
from agent.domain.states import SessionKind
from agent.models.endpoint import NO_CONTROLS
from tools.live_rows import LiveKind, LiveModel, Tracked, TrackedRows

MOST_CALLS, MOST_MESSAGES, MOST_CHARS, MOST_SECONDS = 1_000, 10_000, 10_000_000, 86_400


class Persona(LiveModel):
    """Who answers, with what tools and endpoints, within what limits; or an agent that works for
    others. What is empty is as the environment has it."""

    live_kind = LiveKind.PERSONAS

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[NO_CONTROLS])
    is_default = models.BooleanField(default=False, editable=False)
    """Of the one row that counts where no other is chosen. It cannot be deleted."""
    enabled = models.BooleanField(_("enabled"), default=True)
    kind = models.CharField(
        _("kind"), max_length=8, choices=PersonaKind.choices, default=PersonaKind.PERSONA
    )
    description = models.TextField(
        _("description"),
        blank=True,
        default="",
        help_text=_("Of an agent: what it is good at, for the model that may hand it work."),
    )
    as_tool = models.BooleanField(
        _("a tool of its own"),
        default=False,
        help_text=_("Of an agent: offered as a tool under its own name, besides use_subagent."),
    )
    prompt = models.TextField(
        _("prompt"), blank=True, default="", help_text=_("A template. Empty: SYSTEM_PROMPT.")
    )
    examples = models.JSONField(_("example dialogues"), default=list, blank=True)
    """``[["user", "assistant"], …]``."""
    tool_choice = models.CharField(
        _("tools offered"), max_length=8, choices=ToolChoice.choices, default=ToolChoice.ALL
    )
    tools = models.TextField(
        _("tools"), blank=True, default="", help_text=_("Names of tools, one a line.")
    )
    model_calls = models.PositiveIntegerField(
        _("model calls in one run"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_CALLS)],
        help_text=_("Empty: MAX_ITERATIONS."),
    )
    context_messages = models.PositiveIntegerField(
        _("messages of a request"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_MESSAGES)],
        help_text=_("System message, history and current message. Empty: MAX_CONTEXT_MESSAGES."),
    )
    context_chars = models.PositiveIntegerField(
        _("characters of a request"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_CHARS)],
        help_text=_("Approximately. Empty: MAX_CONTEXT_CHARS."),
    )
    run_seconds = models.PositiveIntegerField(
        _("time limit of a run (seconds)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_SECONDS)],
        help_text=_("Empty: RUN_TIMEOUT."),
    )
    mention = models.BooleanField(
        _("at the sender in groups"),
        null=True,
        blank=True,
        help_text=_("Empty: ENABLE_AT_IN_GROUP_MSG."),
    )
    quote = models.BooleanField(
        _("quote the message in groups"),
        null=True,
        blank=True,
        help_text=_("Empty: ENABLE_REPLY_IN_GROUP_MSG."),
    )
    vision_mode = models.CharField(
        _("pictures"),
        max_length=8,
        choices=[
            ("describe", _("described by the vision model")),
            ("native", _("shown to the chat model")),
            ("both", _("both")),
        ],
        blank=True,
        default="",
        help_text=_("Empty: VISION_MODE."),
    )
    language = models.CharField(
        _("language of fixed sentences"),
        max_length=8,
        choices=FixedLanguage.choices,
        blank=True,
        default="",
    )
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    tracked = Tracked(
        fields=(
            *("name", "enabled", "kind", "description", "as_tool", "prompt", "examples"),
            *("tool_choice", "tools", "model_calls", "context_messages", "context_chars"),
            *("run_seconds", "mention", "quote", "vision_mode", "language"),
        ),
        related={
            "choices": TrackedRows(_("endpoints by role"), ("role", "position", "endpoint")),
            "places": TrackedRows(
                _("where it answers"), ("account", "chat_kind", "peer_id", "user_id")
            ),
        },
    )

    class Meta:
        verbose_name = _("persona")
        verbose_name_plural = _("personas and agents")
        ordering = ("-is_default", "kind", "name")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["is_default"],
                condition=models.Q(is_default=True),
                name="one_default_persona",
            )
        ]

    def __str__(self) -> str:
        return (
            gettext("Default persona") if self.is_default and self.name == "default" else self.name
        )


class PersonaPicture(models.Model):
    """What a persona looks like: a small PNG, in a row of its own, so that no message loads it. Who
    may see or change the persona may see or change it."""

    persona = models.OneToOneField(
        Persona,
        models.CASCADE,
        primary_key=True,
        related_name="portrait",
        verbose_name=_("persona"),
    )
    content = models.BinaryField(_("picture"))

    class Meta:
        verbose_name = _("picture of a persona")
        verbose_name_plural = _("pictures of personas")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.persona)


class PersonaChoice(LiveModel):
    """Where a persona answers. What is empty means any; of several that match, the one with the
    person counts before the one with the chat, and that before the one with the account alone."""

    live_kind = LiveKind.PERSONA_CHOICES

    persona = models.ForeignKey(
        Persona, models.CASCADE, related_name="places", verbose_name=_("persona")
    )
    account = models.CharField(
        _("account"), max_length=64, blank=True, default="", help_text=_("Empty: every account.")
    )
    chat_kind = models.CharField(
        _("kind of chat"), max_length=16, choices=SessionKind.choices, blank=True, default=""
    )
    peer_id = models.CharField(
        _("group or peer"),
        max_length=64,
        blank=True,
        default="",
        help_text=_("The number of the group, or of the person in a private chat."),
    )
    user_id = models.CharField(
        _("person"),
        max_length=64,
        blank=True,
        default="",
        help_text=_("The number of the person who is answered."),
    )

    class Meta:
        verbose_name = _("place of a persona")
        verbose_name_plural = _("where personas answer")
        ordering = ("account", "chat_kind", "peer_id", "user_id")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["account", "chat_kind", "peer_id", "user_id"],
                name="one_persona_per_place",
            )
        ]

    def __str__(self) -> str:
        kind = self.get_chat_kind_display() if self.chat_kind else ""
        parts = (
            f"{gettext('account')} {self.account}" if self.account else "",
            f"{kind} {self.peer_id}".strip(),
            f"{gettext('person')} {self.user_id}" if self.user_id else "",
        )
        return " · ".join(filter(None, parts)) or gettext("everywhere")
