"""Showing that a message is worked on, for as long as it is."""

from collections.abc import Iterator
from contextlib import contextmanager

from agent.domain.types import Outbox
from agent.record.waiting.recovery import PendingMessage


@contextmanager
def working_sign(outbox: Outbox, pending: PendingMessage) -> Iterator[None]:
    """Show it inside, where the chat's manners say so."""
    chat, manners = pending.message.chat, pending.manners
    if not (manners.typing if chat.kind == "private" else manners.reaction):
        yield
        return
    message_id = pending.message.message_id
    outbox.show_working(chat, message_id, manners, is_on=True)
    try:
        yield
    finally:
        outbox.show_working(chat, message_id, manners, is_on=False)
