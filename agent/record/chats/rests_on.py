"""The message that a call rests on."""

from agent.models import Message
from agent.record.chats.chat_record import ReplyTarget, find_targets


def find_basis(session_pk: int, message_id: str) -> tuple[str, ReplyTarget] | None:
    """What somebody quoted in the message with this id of the client, or else that message, as far
    as they are on record of the chat; with its id."""
    quoting = Message.objects.filter(session_id=session_pk, message_id=message_id)
    quoting = quoting.exclude(quoted_id=None).order_by("-pk")
    quoted_id = quoting.values_list("quoted_id", flat=True).first() if message_id else None
    for one in filter(None, (quoted_id, message_id)):
        if found := find_targets(session_pk, one):
            return one, found
    return None
