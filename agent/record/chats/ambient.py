"""What was said in a group that was not for the bot, read again for the model: never part of the
history."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from agent.domain.states import UNSAID
from agent.models import Message
from agent.record.chats.chat_record import RecordedMessage
from agent.record.ground import statements

Direction, Reason, State = Message.Direction, Message.Reason, Message.State

#: Newest messages that are looked at for so many that are wanted, at most.
MOST_SCANNED = 400
#: States of what was not for the bot, or was not answered.
UNANSWERED = frozenset((State.RECORDED, State.SILENT, State.EXPIRED))
#: Reasons of what is no word of the group: orders, notices, and people who are not heard.
LEFT_OUT = frozenset(
    (
        Reason.COMMAND,
        *UNSAID,
        Reason.OWNER_NOTE,
        Reason.OWN_MESSAGE,
        Reason.SYSTEM_NOTICE,
        Reason.EMPTY,
        Reason.BLOCKED,
        Reason.RECALLED,
        Reason.MERGED,
        Reason.STOPPED,
    )
)


@dataclass(frozen=True, slots=True)
class AmbientRequest:
    """The newest ``messages`` of a session before the one with the key ``before``, not older than
    ``minutes``, and after the key ``after``."""

    session_pk: int
    before: int
    messages: int
    minutes: int
    after: int = 0


def find_ambient(wish: AmbientRequest) -> list[RecordedMessage]:
    """The requested messages that were not for the bot, oldest first."""
    found = list[RecordedMessage]()
    for said in _unanswered(wish):
        if len(found) == wish.messages:
            break
        found.append(said)
    return found[::-1]


def _unanswered(wish: AmbientRequest) -> Iterator[RecordedMessage]:
    since = timezone.now() - timedelta(minutes=wish.minutes)
    scanned = min(2 * wish.messages + 20, MOST_SCANNED)
    for row in statements.find_recent.rows(
        before=wish.before, session=wish.session_pk, newest=scanned
    ):
        pk, direction, state, reason, in_history, recalled_at, created_at, *said = row
        if pk <= wish.after or created_at < since:
            return
        if direction != Direction.IN or in_history or recalled_at is not None:
            continue
        if state in UNANSWERED and reason not in LEFT_OUT:
            sender_id, name, message_id, text, seen, at = said
            words = f"{text}{seen}".strip()
            yield RecordedMessage(pk, False, sender_id, name, message_id, words, at or created_at)
