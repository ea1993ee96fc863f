"""That an account cannot speak in a chat. Pure."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext_noop

from agent.domain.states import PauseReason

#: What the record says of a message that was not written for it.
NOT_WRITTEN = {
    PauseReason.MUTED: gettext_noop("not sent: the account is muted in this chat"),
    PauseReason.ALL_MUTED: gettext_noop("not sent: everybody in this group is muted"),
    PauseReason.LEFT: gettext_noop("not sent: the account is no longer in this group"),
    PauseReason.BLOCKED: gettext_noop("not sent: the client refuses messages to this chat"),
}


@dataclass(frozen=True, slots=True)
class Pause:
    """Why the account cannot speak in a chat, and until when; None: until it is lifted."""

    reason: PauseReason
    until: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        return self.until is not None and self.until <= now
