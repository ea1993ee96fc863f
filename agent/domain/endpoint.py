"""An endpoint as the agent uses it: a frozen copy of a row, or of what the environment names."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _, pgettext_lazy


class ModelRole(TextChoices):
    CHAT = "chat", pgettext_lazy("role of a model", "chat")
    VISION = "vision", _("vision")
    TIMING = "timing", _("timing gate")
    MEMORY = "memory", _("summaries and notes")
    TRANSCRIPTION = "transcription", _("transcription")
    EMBEDDING = "embedding", _("embeddings")
    CODER = "coder", _("the Coder subagent")


#: Where the endpoints of a role come from when none are chosen for it.
ROLE_ENVIRONMENTS = {
    ModelRole.CHAT: "UPSTREAM",
    ModelRole.VISION: "VISUAL",
    ModelRole.TRANSCRIPTION: "TRANSCRIBE",
    ModelRole.EMBEDDING: "EMBEDDING",
    ModelRole.CODER: "CODER",
}
#: Roles that have to do with one chat: a persona may choose endpoints for them.
PERSONA_ROLES = (ModelRole.CHAT, ModelRole.VISION, ModelRole.TIMING, ModelRole.TRANSCRIPTION)
#: Roles that are asked of the endpoints of ``chat`` where none are chosen for them.
CHAT_ROLES = frozenset({ModelRole.TIMING, ModelRole.MEMORY, ModelRole.CODER})


class TextCallMode(TextChoices):
    """Whether tool calls that a model writes as text are carried out."""

    AUTO = "auto", _("automatic: where tools were offered and the text is nothing but calls")
    ON = "on", _("yes, also with words before them")
    OFF = "off", _("no: they are text")


class ThinkingSwitch(TextChoices):
    """Whether a model is asked to think before it answers; "" leaves it to the endpoint."""

    OWN = "", _("as the endpoint has it")
    ON = "on", _("on")
    OFF = "off", _("off")


class Ability(TextChoices):
    """What a model behind an endpoint can do."""

    CHAT = "chat", _("answers chats")
    TOOLS = "tools", _("calls tools")
    SEE = "see", _("sees pictures")
    THINK = "think", _("thinks")
    TRANSCRIBE = "transcribe", _("transcribes")
    EMBED = "embed", _("embeds")


class TokenPrices(NamedTuple):
    """What a million tokens cost, in ``currency`` (ISO 4217); None: not known."""

    input: float | None = None
    cached: float | None = None
    output: float | None = None
    reasoning: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model at one address, and how it is asked. Two equal ones can share a client.

    Of ``keys`` one after the other is used. ``parameters`` are keys of the request's body as they
    are sent. ``refuses`` holds what the endpoint was learnt to refuse
    (:class:`agent.llm.errors.refusals.RefusalKind`). Limits of 0 mean none.
    """

    url: str
    keys: tuple[str, ...] = field(default=(), repr=False)
    model: str = ""
    pk: int | None = None
    """Of its row; None for one that has none."""
    name: str = ""
    timeout_seconds: float = 120
    preset: str = ""
    abilities: frozenset[str] = frozenset({Ability.CHAT, Ability.TOOLS})
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    thinking: str = ThinkingSwitch.OWN
    effort: str = ""
    is_streamed: bool = False
    piece_seconds: float = 60
    """Between the pieces of a streamed answer."""
    max_concurrent: int = 0
    calls_per_minute: int = 0
    prices: TokenPrices = field(default_factory=TokenPrices)
    window: int = 0
    """Tokens of a request and its answer; 0: not known."""
    max_tools: int = 0
    text_calls: str = TextCallMode.AUTO
    refuses: frozenset[str] = frozenset()
    token_factor: float = field(default=1.0, compare=False)
    """Tokens that were reported for each that was estimated, when this was read: a client that
    goes on corrects it for itself."""
    environment: str = ""
    """What it is called in the environment (``UPSTREAM``); "" for a row of the operator's."""

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name or self.model

    @property
    def speaker(self) -> str:
        """Who says what this model says: thoughts go back to the same speaker alone. A hash, since
        it goes on record and addresses may hold keys."""
        return _name_speaker(self.url, self.model)


@lru_cache(maxsize=1_000)
def _name_speaker(url: str, model: str) -> str:
    return hashlib.sha256(f"{url}#{model}".encode()).hexdigest()[:16]
