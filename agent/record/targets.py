"""Messages of a chat as a tool may name them, by the client's id."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from agent.models import Message


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """A message of one's own chat."""

    pk: int
    text: str
    sender_id: str
    sender_name: str
    is_recalled: bool


@dataclass(frozen=True, slots=True)
class MessageRecall:
    """That a message was taken back, as the client reported it."""

    account: str
    message_id: str


def find_targets(wanted: Sequence[tuple[int, str]]) -> list[ReplyTarget | None]:
    """For each (session, message id): the newest message of that chat with this id."""
    return [_find(session_pk, message_id) for session_pk, message_id in wanted]


def _find(session_pk: int, message_id: str) -> ReplyTarget | None:
    if not message_id:
        return None
    known = Message.objects.filter(session_id=session_pk, message_id=message_id).exclude(
        reason=Message.Reason.LATER_RESULT
    )
    row = known.only("text", "sender_id", "sender_name", "recalled_at").order_by("-pk").first()
    return (
        ReplyTarget(row.pk, row.text, row.sender_id, row.sender_name, row.recalled_at is not None)
        if row
        else None
    )


def record_recalls(recalls: Sequence[MessageRecall]) -> list[None]:
    """Keep that messages were taken back; they stay on record."""
    for one in recalls:
        gone = Message.objects.filter(
            message_id=one.message_id, session__account=one.account, recalled_at=None
        )
        gone.update(recalled_at=timezone.now())
    return [None] * len(recalls)
