"""What happens in a chat besides messages: who comes and goes, pokes, mutes. Pure."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import TextChoices
from django.utils.translation import pgettext_lazy

from agent.domain.types import ChatAddress

#: Characters of a name, title or file name that are kept of an event.
WORDS_CHARS = 200


class EventKind(TextChoices):
    POKE = "poke", pgettext_lazy("what happened", "poke")
    JOIN = "join", pgettext_lazy("what happened", "somebody joined")
    LEAVE = "leave", pgettext_lazy("what happened", "somebody left")
    RECALL = "recall", pgettext_lazy("what happened", "message taken back")
    MUTE = "mute", pgettext_lazy("what happened", "mute")
    ADMIN = "admin", pgettext_lazy("what happened", "administrators")
    TITLE = "title", pgettext_lazy("what happened", "title")
    CARD = "card", pgettext_lazy("what happened", "card")
    UPLOAD = "upload", pgettext_lazy("what happened", "file")
    ESSENCE = "essence", pgettext_lazy("what happened", "essence message")
    HONOR = "honor", pgettext_lazy("what happened", "honour")
    REACTION = "reaction", pgettext_lazy("what happened", "reaction")
    NAME = "name", pgettext_lazy("what happened", "name of the group")
    FRIEND = "friend", pgettext_lazy("what happened", "new friend")
    ACCOUNT = "account", pgettext_lazy("what happened", "account")


@dataclass(frozen=True, slots=True)
class ChatNotice:
    """One thing that happened, in the same words whatever client reported it. Nothing in it is to
    be believed: clients name any people. Ids are exact text, "" where the client does not say.

    ``operator_id`` did it to ``user_id``, and may be the same. ``seconds`` are of a mute, None
    where no end of it is known; ``happened_at`` is by the client's clock, None where it gave no
    time that can be meant.
    """

    kind: EventKind
    chat: ChatAddress | None
    """Where; None for what is of the account alone, and where the client does not say."""
    change: str = ""
    """Which way, "" where the client does not say: ``approve`` or ``invite`` (join); ``leave``,
    ``kick`` or ``disband``, when the account is the one who left; ``ban`` or ``lift`` (mute);
    ``set`` or ``unset`` (admin); ``add`` or ``remove`` (essence, reaction); which honour, or
    ``lucky_king``; ``offline`` or ``online`` (account)."""
    user_id: str = ""
    """Whom it is about: who came, was muted, wrote what was taken back. Who poked (``target_id``),
    uploaded, reacted. "" also for the whole group (mute)."""
    target_id: str = ""
    operator_id: str = ""
    message_id: str = ""
    seconds: int | None = None
    words: str = ""
    """The new card, title or name, the name of a file, ids of emoji, the client's reason: one line
    of people's words."""
    happened_at: datetime | None = None
