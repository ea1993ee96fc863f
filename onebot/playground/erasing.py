"""Erasing everything of a playground: its chats with all that was done in them, what was remembered
of them, our copies of its media. What it cost stays: that money was spent.
"""

from collections.abc import Iterator

from django.db import transaction

from agent.domain.playground import is_playground
from agent.models import (
    Budget,
    ChatSession,
    Description,
    KeptFile,
    Manners,
    Message,
    MessageMedia,
    Note,
    NoteProposal,
    PersonaChoice,
    ResultPicture,
    Run,
    Tally,
)
from agent.runtime import wiring
from onebot.models import Bot, ClientEvent

#: Rows that one transaction erases: others write between two of them.
BATCH = 100


def erase_playground(account: str) -> int:
    """Erase what is on record of ``account``; how many messages there were. Blocks.

    A client may be connected and an answer under way: whoever works on it finds its claim gone, and
    writes and sends nothing more. Called again after a failure, it goes on. Raises ValueError for
    an account that is no playground.
    """
    if not is_playground(account):
        raise ValueError(f"{account} is no playground")
    count, kept, read = 0, set[int](), set[int]()
    for session in _sessions(account):
        count += _erase_messages(session, kept, read)
        with transaction.atomic():
            pictures = ResultPicture.objects.filter(session=session)
            kept |= set(pictures.values_list("kept", flat=True))
            # Of what came meanwhile, the cascade erases the rows.
            ChatSession.objects.filter(pk=session).delete()
    _erase_copies(kept, read)
    _erase_settings(account)
    return count


def _sessions(account: str) -> Iterator[int]:
    """The chats, the newest last; each is to be erased before the next is asked for."""
    rows = ChatSession.objects.filter(account=account).order_by("pk").values_list("pk", flat=True)
    while (pk := rows.first()) is not None:
        yield pk


def _erase_messages(session: int, kept: set[int], read: set[int]) -> int:
    """Erase the messages of a chat and the runs for them; add the keys of their copies and of what
    was read in these."""
    count = 0
    rows = Message.objects.filter(session=session).order_by("-pk").values_list("pk", flat=True)
    while pks := list(rows[:BATCH]):
        with transaction.atomic():
            media = MessageMedia.objects.filter(message__in=pks)
            for copy, description in media.values_list("kept", "description"):
                kept |= {copy} - {None}
                read |= {description} - {None}
            Run.objects.filter(message__in=pks).only("pk").delete()
            Message.objects.filter(pk__in=pks).only("pk").delete()
        count += len(pks)
    return count


def _erase_copies(kept: set[int], read: set[int]) -> None:
    """Erase copies and what was read in them, where no message of another chat has the same."""
    files = wiring.build_file_store()
    with transaction.atomic():
        Description.objects.filter(pk__in=read, uses=None).delete()
        unused = KeptFile.objects.filter(pk__in=kept, uses=None, results=None)
        hashes = list(unused.values_list("sha256", flat=True))
        KeptFile.objects.filter(sha256__in=hashes).delete()
    for sha256 in hashes:
        files.remove(sha256)


@transaction.atomic
def _erase_settings(account: str) -> None:
    """Erase what was remembered and chosen; the bot's row too, unless it is connected."""
    notes = Note.objects.filter(account=account)
    pks = set(notes.values_list("pk", flat=True))
    for proposal in NoteProposal.objects.all() if pks else ():
        if pks & set(proposal.note_ids):
            proposal.delete()
    notes.delete()
    PersonaChoice.objects.filter(account=account).delete()
    Manners.objects.filter(account=account).delete()
    Budget.objects.filter(subject__startswith=f"onebot:{account}").delete()
    Tally.objects.filter(subject__startswith=f"onebot:{account}").delete()
    ClientEvent.objects.filter(self_id=account).delete()
    Bot.objects.filter(self_id=account, online=False).delete()
