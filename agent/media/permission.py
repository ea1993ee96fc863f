"""For whom voice is heard and files are read. Pure."""

from agent.types import IncomingMessage, Outbox, Whom


def is_for(whom: Whom, sender_id: str, owners: frozenset[str]) -> bool:
    """Whether what is done for ``whom`` is done for this sender."""
    return whom == "on" or (whom == "owners" and sender_id in owners)


def may_be_heard(outbox: Outbox, message: IncomingMessage) -> bool:
    return is_for(outbox.attention(message.chat).voice, message.sender_id, outbox.owners(message.chat))


def may_be_read(outbox: Outbox, message: IncomingMessage) -> bool:
    return is_for(outbox.attention(message.chat).files, message.sender_id, outbox.owners(message.chat))
