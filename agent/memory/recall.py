"""What comes to mind when a message is read: found and fenced in one go."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from agent.domain.notes import NoteViewer
from agent.memory.note_visibility import to_recalled_notes, visible_notes
from agent.memory.notes_store import chat_owner, mark_notes_used
from agent.memory.prompt_block import MemoryContext, fit_notes, quote_notes, quote_summary
from agent.memory.relevance import RecalledNote, rank_notes
from agent.memory.summary_store import find_last_hidden_run
from agent.memory.vector_store import NO_VECTOR, TextVector, find_note_candidates
from agent.models import Digest, Note
from agent.record.ground.compiled_sql import PreparedSelect
from agent.record.runs.runs import has_any_note

#: Newest notes about the speaker, and about the chat itself, that are recalled whatever is said.
SPEAKER_NOTES, CHAT_NOTES = 5, 3
#: Notes that speak of what the message speaks of: the best so many, so that there is room for the
#: others.
HITS = 8

#: Every run comes after it.
NO_RUN = -1

#: The newest summary of a session that begins after a run; its parameters are that run, the kind
#: and the session.
summary_query = PreparedSelect(
    Digest.objects.filter(first_run__gt=0, kind=Digest.DigestKind.SUMMARY, session_id=0)
    .order_by("-last_run")
    .values_list("text")[:1]
)


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A message to be answered, and the characters that memory may take; 0 for none.

    ``session_pk``: the chat whose summary is wanted, None for no summary; ``is_reset``: whether its
    context was ever begun afresh.
    """

    viewer: NoteViewer
    text: str
    budget: int
    session_pk: int | None = None
    meaning: TextVector = NO_VECTOR
    is_reset: bool = False


def recall_notes(wish: RecallRequest) -> MemoryContext:
    """What the model should have in mind for a message."""
    rows = []
    if wish.session_pk:
        hidden = find_last_hidden_run(wish.session_pk) if wish.is_reset else NO_RUN
        rows = summary_query(hidden, Digest.DigestKind.SUMMARY.value, wish.session_pk)
    summary = str(rows[0][0]) if rows else ""
    return MemoryContext(quote_summary(summary), build_memory_block(wish))


def build_memory_block(wish: RecallRequest) -> str:
    """The fenced notes that ``wish.viewer`` should remember now; "" for none.

    First the notes on the message's subject, then the latest notes about the sender and the chat: a
    request like "call me captain" has no word in common with the message it matters for.
    """
    if wish.budget <= 0 or not has_any_note():
        return ""
    now = timezone.now()
    hits = rank_notes(
        wish.text, find_note_candidates(wish.viewer, wish.text, wish.meaning, now), now
    )[:HITS]
    known = {note.pk for note in hits}
    standing = [note for note in _standing(wish.viewer, now) if note.pk not in known]
    notes = fit_notes([*hits, *standing], wish.budget)
    mark_notes_used(note.pk for note in notes)
    return quote_notes(notes)


def _standing(viewer: NoteViewer, now: datetime) -> list[RecalledNote]:
    notes = visible_notes(viewer, now)
    speaker = notes.filter(owner_kind=Note.Owner.PERSON, owner_id=viewer.person).order_by("-pk")[
        :SPEAKER_NOTES
    ]
    kind, owner = chat_owner(viewer)
    chat = notes.filter(owner_kind=kind, owner_id=owner).order_by("-pk")[:CHAT_NOTES]
    return to_recalled_notes(speaker) + to_recalled_notes(chat)
