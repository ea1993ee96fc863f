"""What comes to mind when a message is read: found and fenced in one go."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.utils import timezone

from agent.memory.audience import Viewer
from agent.memory.background import Background
from agent.memory.fence import fenced, fenced_summary, fitting_notes
from agent.memory.relevance import Recollection, relevant
from agent.models import Digest, Note
from agent.store.note_vectors import NO_MEANING, Meaning, candidates
from agent.store.note_views import read, visible
from agent.store.notes import mark_used
from agent.store.prepared import Select

#: Newest notes about the speaker, and about the chat itself, that are recalled whatever is said.
SPEAKER_NOTES, CHAT_NOTES = 5, 3
#: Notes that speak of what the message speaks of: the best so many, so that there is room for the others.
HITS = 8


@dataclass(frozen=True, slots=True)
class Recall:
    """A message to be answered, and the characters that memory may take; 0 for none.

    ``session_pk``: the chat whose summary is wanted, None for no summary.
    """

    viewer: Viewer
    text: str
    budget: int
    session_pk: int | None = None
    meaning: Meaning = NO_MEANING


def recall(wishes: Sequence[Recall]) -> list[Background]:
    """What each message's chat should have in mind."""
    return [Background(fenced_summary(_summary(wish.session_pk)), memory_block(wish)) for wish in wishes]


def memory_block(wish: Recall) -> str:
    """The fenced notes that ``wish.viewer`` should remember now; "" for none.

    First what speaks of what the message speaks of, then what was last noted about the
    speaker and the chat: a wish like "call me captain" has no word in common with the
    message it matters for.
    """
    if wish.budget <= 0 or not any_note():
        return ""
    now = timezone.now()
    hits = relevant(wish.text, candidates(wish.viewer, wish.text, wish.meaning, now), now)[:HITS]
    known = {note.pk for note in hits}
    standing = [note for note in _standing(wish.viewer, now) if note.pk not in known]
    notes = fitting_notes([*hits, *standing], wish.budget)
    mark_used(note.pk for note in notes)
    return fenced(notes)


def _standing(viewer: Viewer, now: datetime) -> list[Recollection]:
    notes = visible(viewer, now)
    speaker = notes.filter(owner_kind=Note.Owner.PERSON, owner_id=viewer.person).order_by("-pk")[:SPEAKER_NOTES]
    kind, owner = (Note.Owner.SESSION, viewer.chat) if viewer.is_private else (Note.Owner.GROUP, viewer.peer)
    chat = notes.filter(owner_kind=kind, owner_id=owner).order_by("-pk")[:CHAT_NOTES]
    return read(speaker) + read(chat)


def _summary(session_pk: int | None) -> str:
    rows = _newest_summary()(Digest.Kind.SUMMARY.value, session_pk) if session_pk else []
    return str(rows[0][0]) if rows else ""


def any_note() -> bool:
    """Whether there is anything to recall, for whomever."""
    return bool(_a_note()())


@cache
def _a_note() -> Select:
    return Select(Note.objects.order_by().values_list("pk")[:1])


@cache
def _newest_summary() -> Select:
    """The newest summary of a session; its parameters are the kind and the session."""
    summaries = Digest.objects.filter(kind=Digest.Kind.SUMMARY, session_id=0)
    return Select(summaries.order_by("-last_run").values_list("text")[:1])
