"""Messages of one chat by what is quoted."""

from agent.models import Message


def find_sender(session_pk: int, message_id: str) -> str:
    """Who said the message with this id of the client, as far as that is on record of the chat; ""
    for the bot itself, and where nothing is known."""
    said = Message.objects.filter(
        session_id=session_pk,
        message_id=message_id,
        direction=Message.Direction.IN,
    ).exclude(reason=Message.Reason.OWN_MESSAGE)
    row = said.order_by("-pk").first() if message_id else None
    return row.sender_id if row else ""
