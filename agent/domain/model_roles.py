"""What models are asked for. Each role names an ordered list of endpoints."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


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
