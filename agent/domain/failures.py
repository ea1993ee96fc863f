"""What becomes of an answer that failed: who is told what. Pure but for the settings."""

from enum import StrEnum

from django.conf import settings
from django.urls import get_script_prefix
from django.utils import translation
from django.utils.translation import gettext, gettext_noop

from agent.domain.errors import LLMError, RunTimeout
from agent.domain.states import MessageState
from agent.domain.types import ChatAddress, Delivery


def run_page(run_pk: int) -> str:
    """The path of a run's page, which :func:`django.urls.reverse` would load all pages to know."""
    return f"{get_script_prefix()}admin/agent/run/{run_pk}/change/"


def find_own_link(path: str) -> str:
    """``path`` on the first origin that is known to be this server's; "" where none is."""
    known = [one for one in settings.CSRF_TRUSTED_ORIGINS if "*" not in one]
    return f"{known[0].rstrip('/')}{path}" if known else ""


#: The same apology is said once in a chat within so many seconds.
APOLOGY_SECONDS = 60
#: Owners are told of the same kind of failure of an account once within so many seconds.
OWNER_NOTE_SECONDS = 600
#: Characters of a group's name in a note.
LONGEST_NAME = 40


class FailureKind(StrEnum):
    """What went wrong."""

    MODEL = "model"
    TIME = "time"
    PROGRAM = "program"
    SENDING = "sending"
    LATE = "late"
    OFTEN = "often"
    UNASKED = "unasked"


#: How the record's text begins of a message that QQ refused to an official bot.
OF_OFFICIAL_BOTS = {
    FailureKind.LATE: "too late for an official bot",
    FailureKind.OFTEN: "too often for an official bot",
    FailureKind.UNASKED: "unasked of an official bot",
}
#: How bridges of official bots word that QQ takes no message which answers none.
UNASKED = r"\b4003410[25]\b|主动消息失败"
#: What happened, and what an owner can do.
WORDS = {
    FailureKind.MODEL: (
        gettext_noop("The model could not be asked, or gave no answer."),
        gettext_noop("Check the address, the key and the credit under “Model endpoints”."),
    ),
    FailureKind.TIME: (
        gettext_noop("The answer took longer than one may take."),
        gettext_noop("If this happens often, allow the persona more time or fewer model calls."),
    ),
    FailureKind.PROGRAM: (
        gettext_noop("The program failed."),
        gettext_noop("The server's log says where; please report it."),
    ),
    FailureKind.SENDING: (
        gettext_noop("The client refused to send the answer."),
        gettext_noop(
            "Its words are with the message. Often QQ restricts the account for a while: let it "
            "send less, and look at the client."
        ),
    ),
    FailureKind.LATE: (
        gettext_noop(
            "QQ takes an official bot's answers for 5 minutes after a message in a group, for 60 "
            "in private; this one came later."
        ),
        gettext_noop("Allow runs less time, or choose a faster model."),
    ),
    FailureKind.OFTEN: (
        gettext_noop("QQ takes 5 answers of an official bot to one message; this was one more."),
        gettext_noop("Let the persona answer in fewer and longer messages."),
    ),
    FailureKind.UNASKED: (
        gettext_noop(
            "QQ refused it: without permission, an official bot speaks only in answer to a message."
        ),
        gettext_noop(
            "What nobody asked for, as notes to owners, cannot be sent by this account, unless QQ "
            "or the group's owner allows it."
        ),
    ),
}


def failure_kind(error: Exception) -> FailureKind:
    """The kind of a run's error."""
    if isinstance(error, LLMError):
        return FailureKind.MODEL
    return FailureKind.TIME if isinstance(error, RunTimeout) else FailureKind.PROGRAM


def refusal_kind(error: str) -> FailureKind:
    """The kind of a message's refusal, by the text on record."""
    found = (kind for kind, words in OF_OFFICIAL_BOTS.items() if error.startswith(words))
    return next(found, FailureKind.SENDING)


def is_refused(delivery: Delivery, not_connected: str) -> bool:
    """Whether a message was refused in a chat where another one may be accepted: not because the
    account is muted there, or away."""
    return (
        delivery.state == MessageState.FAILED
        and delivery.pause is None
        and delivery.error != not_connected
    )


def owner_note(kind: FailureKind, chat: ChatAddress, title: str, run_pk: int, path: str) -> str:
    """What owners are told, in LANGUAGE_CODE: no word of the chat and none of the error, which may
    quote either. ``path`` is that of the run's page, linked where an address of this server is
    known."""
    name = " ".join(title.split())[:LONGEST_NAME]
    where = f"{chat.kind}:{chat.peer_id}" + (f" “{name}”" if name else "")
    happened, remedy = WORDS[kind]
    with translation.override(settings.LANGUAGE_CODE):
        first = gettext("A message in %(where)s was not answered (run %(run)s).")
        if kind in OF_OFFICIAL_BOTS:
            first = gettext("A message to %(where)s was not sent (run %(run)s).")
        lines = [
            first % {"where": where, "run": run_pk},
            gettext(happened),
            gettext(remedy),
            gettext("Further failures of this kind are not told for ten minutes."),
        ]
    if link := find_own_link(path):
        lines.append(link)
    return "\n".join(lines)
