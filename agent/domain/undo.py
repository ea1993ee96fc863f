"""Taking back what runs said and did: who may take back how much, and how steps of it end. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, auto

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _, gettext_noop

#: How long the one who asked may take the answer back.
ASKERS_TIME = timedelta(minutes=2)

NOT_YOURS = gettext_noop(
    "Only who asked for an answer, owners, and who leads this group can undo it."
)
TOO_LATE = gettext_noop(
    "The two minutes are over. Owners, and who leads this group, can still do it."
)
NOTHING_LEFT = gettext_noop("There is nothing left to undo.")
CHANGED = gettext_noop("it has been changed since")
WITHDRAWN = gettext_noop("it waited for an approval and will not be made")


class UndoKind(TextChoices):
    MESSAGE = "message", _("message")
    CALL = "call", _("tool call")
    STATE = "state", _("state of the chat")


class UndoState(TextChoices):
    """``running``: it may be carried out at this moment."""

    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    DONE = "done", _("undone")
    FAILED = "failed", _("failed")
    UNKNOWN = "unknown", _("outcome unknown")


class UndoReach(IntEnum):
    """How much somebody may take back; the higher holds the lower."""

    WORDS = auto()
    """What was said in the chat."""
    CHAT = auto()
    """What was said there and done."""
    EVERYTHING = auto()
    """What was said in other chats, too."""


@dataclass(frozen=True, slots=True)
class UndoAsker:
    """Who wants something taken back: a ``person`` of a chat, or the operator ``author``. ``reach``
    is that of any run; ``WORDS`` of those that he asked for alone."""

    author: str
    person: str = ""
    reach: UndoReach = UndoReach.WORDS


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """How one step ended. ``words`` are those of a client or a tool, or one of the above."""

    state: UndoState
    words: str = ""


def judge_undo(
    asker: UndoAsker, asked_by: str, ended_at: datetime | None, now: datetime
) -> UndoReach | str:
    """How much of a run ``asker`` may take back that ``asked_by`` asked for and that ended then, or
    why nothing of it."""
    if asker.reach > UndoReach.WORDS:
        return asker.reach
    if not asker.person or asker.person != asked_by:
        return NOT_YOURS
    is_late = ended_at is not None and now - ended_at > ASKERS_TIME
    return TOO_LATE if is_late else UndoReach.WORDS
