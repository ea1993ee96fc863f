"""For whom voice is heard and files are read. Pure."""

from agent.domain.types import IncomingMessage, MediaAudience, Outbox


def is_allowed_for(whom: MediaAudience, sender_id: str, owners: frozenset[str]) -> bool:
    """Whether what is done for ``whom`` is done for this sender."""
    return whom == "on" or (whom == "owners" and sender_id in owners)


def may_transcribe(outbox: Outbox, message: IncomingMessage) -> bool:
    return is_allowed_for(
        outbox.attention(message.chat).voice, message.sender_id, outbox.owners(message.chat)
    )


def may_read_files(outbox: Outbox, message: IncomingMessage) -> bool:
    return is_allowed_for(
        outbox.attention(message.chat).files, message.sender_id, outbox.owners(message.chat)
    )
