"""Recalls that were reported before the messages they are of: some clients prepare a message longer
than its recall (reference: NapCat and LLBot fetch addresses first).

What was reported to this process is kept for some minutes, in the thread of the database. It was
not learnt from rows, so it stays when a transaction is not committed.
"""

from collections import OrderedDict
from datetime import datetime, timedelta

from agent.domain.types import ChatAddress

#: Recalls that are kept, and for how long.
MOST, KEPT_FOR = 1_000, timedelta(minutes=5)

known: "OrderedDict[tuple[str, str], tuple[ChatAddress | None, datetime]]" = OrderedDict()
"""By account and the client's message id: the chat, as far as the client said it, and when."""


def remember(account: str, message_id: str, chat: ChatAddress | None, now: datetime) -> None:
    """Keep that a message which is not on record was recalled."""
    known[account, message_id] = chat, now
    known.move_to_end((account, message_id))
    while len(known) > MOST:
        known.popitem(last=False)


def was_recalled(chat: ChatAddress, message_id: str, now: datetime) -> bool:
    """Whether a message that arrives was recalled before."""
    if not known or not message_id:
        return False
    where, at = known.get((chat.account, message_id), (None, None))
    return at is not None and now - at < KEPT_FOR and names_chat(where, chat)


def names_chat(said: ChatAddress | None, chat: ChatAddress) -> bool:
    """Whether ``said``, as much of a chat as a client names, can be ``chat``: None is any chat, one
    without a peer any of its kind."""
    return said is None or (said.kind == chat.kind and said.peer_id in ("", chat.peer_id))


def forget() -> None:
    """Forget all: another record begins."""
    known.clear()
