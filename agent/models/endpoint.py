"""Model endpoints that operators have set up, and which of them are asked for what."""

import json
from typing import Any, ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.endpoint import ModelRole, TextCallMode, ThinkingSwitch
from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.secrets.encryption import decrypt, encrypt
from tools.secrets.masked import mask_url, mask_value

#: The highest limits that can be set.
MOST_SECONDS, MOST_TOKENS, MOST_CALLS = 3_600, 100_000_000, 100_000
NO_CONTROLS = RegexValidator(r"^[^\x00-\x1f\x7f]*\Z", _("No control characters."))


def _number(name: Any, most: int, help_text: Any, least: int = 1) -> Any:
    bounds = [MinValueValidator(least), MaxValueValidator(most)]
    return models.PositiveIntegerField(
        name, null=True, blank=True, validators=bounds, help_text=help_text
    )


def _price(name: Any, help_text: Any = "") -> Any:
    bounds = [MinValueValidator(0), MaxValueValidator(1_000_000)]
    return models.DecimalField(
        name,
        max_digits=13,
        decimal_places=6,
        null=True,
        blank=True,
        validators=bounds,
        help_text=help_text,
    )


class ModelEndpoint(LiveModel):
    """One model at one address. Keys and the values of headers are sealed.

    A row with an ``environment`` mirrors what the environment names: its address, key and model
    are there, everything else is the operator's.
    """

    live_kind = LiveKind.ENDPOINTS

    name = models.CharField(_("name"), max_length=100, unique=True, validators=[NO_CONTROLS])
    enabled = models.BooleanField(_("enabled"), default=True)
    environment = models.CharField(max_length=16, blank=True, default="", editable=False)
    position = models.PositiveIntegerField(
        _("order"),
        default=100,
        help_text=_("Where no endpoints are chosen for a role, lower numbers are asked first."),
    )
    preset = models.CharField(_("provider"), max_length=32, blank=True, default="")
    base_url = models.CharField(_("base URL"), max_length=2000, blank=True, default="")
    model = models.CharField(
        _("model"), max_length=200, blank=True, default="", validators=[NO_CONTROLS]
    )
    sealed_keys = models.TextField(editable=False, blank=True, default="")
    sealed_headers = models.TextField(editable=False, blank=True, default="")

    can_chat = models.BooleanField(_("answers chats"), default=True)
    can_tools = models.BooleanField(_("calls tools"), default=True)
    can_see = models.BooleanField(_("sees pictures"), default=False)
    can_think = models.BooleanField(_("thinks"), default=False)
    can_transcribe = models.BooleanField(_("transcribes"), default=False)
    can_embed = models.BooleanField(_("embeds"), default=False)

    temperature = models.FloatField(
        "temperature",
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(2)],
    )
    top_p = models.FloatField(
        "top_p", null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(1)]
    )
    max_tokens = _number("max_tokens", MOST_TOKENS, _("Tokens of one answer. Empty: not sent."))
    thinking = models.CharField(
        _("thinking"), max_length=3, choices=ThinkingSwitch.choices, blank=True, default=""
    )
    effort = models.CharField(
        _("effort"),
        max_length=16,
        blank=True,
        default="",
        help_text=_("How much it thinks, in the endpoint's word: low, medium, high … "),
    )
    extra_body = models.JSONField(
        "extra_body",
        default=dict,
        blank=True,
        help_text=_("Further keys of the request, as a JSON object. They come last and win."),
    )
    streamed = models.BooleanField(
        _("streamed"),
        default=False,
        help_text=_("For gateways that cut long silent requests."),
    )
    piece_seconds = models.PositiveIntegerField(
        _("time limit between pieces (seconds)"),
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_SECONDS)],
        help_text=_("Of a streamed answer."),
    )
    timeout_seconds = _number(
        _("time limit (seconds)"), MOST_SECONDS, _("For one call. Empty: LLM_TIMEOUT.")
    )
    max_concurrent = _number(_("calls at once"), MOST_CALLS, _("Empty: no limit."))
    calls_per_minute = _number(_("calls a minute"), MOST_CALLS, _("Empty: no limit."))

    price_input = _price(_("input"), _("Per million tokens."))
    price_cached = _price(_("cached input"), _("Empty: as other input."))
    price_output = _price(_("output"))
    price_reasoning = _price(_("reasoning"), _("Empty: as other output."))
    currency = models.CharField(
        _("currency"),
        max_length=3,
        blank=True,
        default="CNY",
        validators=[RegexValidator(r"^([A-Z]{3})?\Z", _("Three capital letters, such as CNY."))],
    )

    window = _number(
        _("window (tokens)"),
        MOST_TOKENS,
        _("How many tokens a request and its answer may have together. Empty: not known."),
        least=256,
    )
    max_tools = _number(
        _("tools at most"),
        10_000,
        _("Small models choose badly among many tools: then fewer are offered."),
        least=0,
    )
    text_calls = models.CharField(
        _("tool calls written as text"),
        max_length=4,
        choices=TextCallMode.choices,
        default=TextCallMode.AUTO,
    )
    learnt = models.JSONField(default=dict, blank=True, editable=False)
    """What it refuses, by :class:`agent.llm.errors.refusals.RefusalKind`: ``{"at": ISO time,
    "words": what it answered}``."""
    token_factor = models.FloatField(default=1.0, editable=False)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    #: Where it is and what is sent there is not taken back: stored keys would go elsewhere.
    tracked = Tracked(
        fields=(
            *("name", "enabled", "position", "model"),
            *("can_chat", "can_tools", "can_see", "can_think", "can_transcribe", "can_embed"),
            *("temperature", "top_p", "max_tokens", "thinking", "effort", "extra_body"),
            *("streamed", "piece_seconds", "timeout_seconds", "max_concurrent"),
            *("calls_per_minute", "price_input", "price_cached", "price_output"),
            *("price_reasoning", "currency", "window", "max_tools", "text_calls"),
        ),
        masked={
            "preset": (_("provider"), str),
            "base_url": (_("base URL"), mask_url),
            "keys": (_("keys"), mask_value),
            "headers": (_("headers"), mask_value),
        },
    )

    class Meta:
        verbose_name = _("model endpoint")
        verbose_name_plural = _("model endpoints")
        ordering = ("position", "id")

    def __str__(self) -> str:
        return self.name

    @property
    def keys(self) -> list[str]:
        """The keys, used in turn. Raises :class:`tools.secrets.encryption.DecryptionError` when
        they have to be entered again."""
        return list(json.loads(decrypt(self.sealed_keys))) if self.sealed_keys else []

    @keys.setter
    def keys(self, values: list[str]) -> None:
        self.sealed_keys = encrypt(json.dumps(values)) if values else ""

    @property
    def headers(self) -> dict[str, str]:
        """Sent with every request. Raises as :attr:`keys` does."""
        return dict(json.loads(decrypt(self.sealed_headers))) if self.sealed_headers else {}

    @headers.setter
    def headers(self, values: dict[str, str]) -> None:
        self.sealed_headers = encrypt(json.dumps(values)) if values else ""


class EndpointStatus(models.Model):
    """How an endpoint fared lately, in any process. Written by the program when it changes."""

    endpoint = models.OneToOneField(
        ModelEndpoint, models.CASCADE, primary_key=True, related_name="status"
    )
    answered_at = models.DateTimeField(_("answered last"), null=True)
    error = models.TextField(_("last error"), blank=True, default="")
    error_at = models.DateTimeField(_("last error at"), null=True)
    rests_until = models.DateTimeField(_("not asked until"), null=True)
    refused_keys = models.JSONField(default=list)
    """Numbers of the keys, from 0 on, that were refused and are set aside."""

    class Meta:
        verbose_name = _("state of an endpoint")
        verbose_name_plural = _("states of endpoints")

    def __str__(self) -> str:
        return str(self.endpoint)


class EndpointChoice(LiveModel):
    """One endpoint of the ordered list that a persona asks for a role. Those of the default persona
    count where others choose none."""

    live_kind = LiveKind.PERSONAS

    persona = models.ForeignKey(
        "agent.Persona", models.CASCADE, related_name="choices", verbose_name=_("persona")
    )
    role = models.CharField(_("role"), max_length=16, choices=ModelRole.choices)
    position = models.PositiveIntegerField(_("order"), default=1)
    endpoint = models.ForeignKey(
        ModelEndpoint, models.CASCADE, related_name="choices", verbose_name=_("model endpoint")
    )

    class Meta:
        verbose_name = _("choice of an endpoint")
        verbose_name_plural = _("endpoints by role")
        ordering = ("role", "position", "id")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["persona", "role", "endpoint"], name="one_choice_per_role"
            )
        ]

    def __str__(self) -> str:
        return f"{self.persona}: {self.get_role_display()} {self.position}"
