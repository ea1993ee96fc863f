"""Notes to the owners of an account, in their private chats with it.

Such a note is an incoming message like a later result: work on record, taken up by the
inbox within seconds, also after a restart, and told by a run that asks no model.
"""

from collections.abc import Collection
from datetime import datetime

from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message


def tell_owners(account: ChatAddress, owners: Collection[str], text: str, now: datetime) -> None:
    """Put a note on record for each of ``owners``; ``account`` is a chat of the account that is to
    tell them."""
    for owner in sorted(owners):
        chat = ChatAddress(account.account, "private", owner.rpartition(":")[2], account.platform)
        place = {
            "account": chat.account,
            "kind": chat.kind,
            "peer_id": chat.peer_id,
            "platform": chat.platform,
        }
        session, _ = ChatSession.objects.get_or_create(**place, defaults={"last_message_at": now})
        Message.objects.create(
            session=session,
            direction=Message.Direction.IN,
            state=Message.State.WAITING,
            reason=Message.Reason.OWNER_NOTE,
            sender_id=chat.peer_id,
            text=text,
            place=chat.place,
            created_at=now,
        )
