"""Notices to the owners of an account, each in their private chat with it."""

from collections.abc import Collection
from datetime import datetime

from agent.domain.types import ChatAddress
from agent.models import ChatSession, Message


def tell_owners(
    account: ChatAddress,
    owners: Collection[str],
    text: str,
    now: datetime,
    call_pk: int | None = None,
    raw: dict[str, object] | None = None,
) -> None:
    """Record a notice for each of ``owners``; ``account`` is a chat of the account that sends it,
    ``call_pk`` the call that it asks about, ``raw`` what it is about otherwise."""
    for owner in sorted(owners):
        chat = ChatAddress(account.account, "private", owner.rpartition(":")[2], account.platform)
        address = {
            "account": chat.account,
            "kind": chat.kind,
            "peer_id": chat.peer_id,
            "platform": chat.platform,
        }
        session, _ = ChatSession.objects.get_or_create(**address, defaults={"last_message_at": now})
        Message.objects.create(
            session=session,
            direction=Message.Direction.IN,
            state=Message.State.WAITING,
            reason=Message.Reason.OWNER_NOTE,
            sender_id=chat.peer_id,
            text=text,
            tool_call_id=call_pk,
            raw=raw,
            place=chat.place,
            created_at=now,
        )
