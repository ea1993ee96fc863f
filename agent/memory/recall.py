"""What comes to mind when a message is read: found and fenced in one go."""

from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from agent.domain.notes import NoteViewer
from agent.memory import notes_store, vector_store
from agent.memory.note_visibility import to_recalled_notes, visible_notes
from agent.memory.notes_store import chat_owner, mark_notes_used
from agent.memory.relevance import (
    MemoryContext,
    RecalledNote,
    fit_notes,
    quote_notes,
    quote_summary,
    rank_notes,
)
from agent.memory.summary_store import find_last_hidden_run
from agent.memory.vector_store import (
    NO_VECTOR,
    FindEmbedder,
    TextVector,
    embed_message,
    find_note_candidates,
)
from agent.models import Digest, Note
from agent.record.ground import statements
from agent.record.record import Record
from agent.record.runs.runs import has_any_note

#: Newest notes about the speaker, and about the chat itself, that are recalled whatever is said.
SPEAKER_NOTES, CHAT_NOTES = 5, 3
#: Notes that speak of what the message speaks of: the best so many, so that there is room for the
#: others.
HITS = 8

#: Every run comes after it.
NO_RUN = -1


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
        rows = statements.find_summary.rows(
            session=wish.session_pk, kind=Digest.DigestKind.SUMMARY, after=hidden
        )
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


# Memory as the rest of the agent uses it: one awaitable call for each thing to note or to look
# up.


class NoteService:
    """The notes, through the record's one thread. Every method returns once its commit is done.

    After cancellation of a method the commit may still happen.
    """

    def __init__(
        self,
        record: Record,
        find_embedder: FindEmbedder = lambda: None,
        *,
        counts_uses: bool = True,
    ) -> None:
        """``counts_uses``: whether what :meth:`find` and :meth:`profile` find counts as used."""
        self._record = record
        self._find_embedder = find_embedder
        self._finding = notes_store.find_notes if counts_uses else notes_store.peek_notes
        self._profiling = notes_store.load_profiles if counts_uses else notes_store.peek_profiles

    def without_marks(self) -> "NoteService":
        """The same notes for a run that changes nothing: what it finds does not count as used."""
        return NoteService(self._record, self._find_embedder, counts_uses=False)

    async def remember(self, wish: notes_store.NewNote) -> notes_store.WrittenNote:
        return await self._record.submit(notes_store.write_notes, wish)

    async def forget(
        self, viewer: NoteViewer, note_pk: int, is_manager: bool
    ) -> notes_store.RemovedNote:
        return await self._record.submit(notes_store.delete_notes, viewer, note_pk, is_manager)

    async def restore(self, call_pk: int) -> notes_store.NoteResult:
        """Take back what the call has forgotten."""
        return await self._record.submit(notes_store.restore_note, call_pk)

    async def find(self, search: notes_store.NoteSearch) -> list[RecalledNote]:
        meaning = await self._meaning(search.viewer, search.words)
        return await self._record.submit_batched(self._finding, replace(search, meaning=meaning))

    async def people_named(self, viewer: NoteViewer, name: str) -> tuple[str, ...]:
        """Ids of those who go by ``name`` in this chat, the last speaker first."""
        return await self._record.submit(notes_store.find_people_by_name, viewer, name)

    async def profile(
        self, viewer: NoteViewer, person_id: str, limit: int
    ) -> notes_store.PersonProfile:
        return await self._record.submit(self._profiling, viewer, person_id, limit)

    async def recall(
        self,
        viewer: NoteViewer,
        text: str,
        *,
        budget: int,
        session_pk: int | None = None,
        is_reset: bool = False,
    ) -> MemoryContext:
        """What the model should have in mind for ``text``; with a budget of 0 and no session
        nothing is asked.

        ``session_pk``: the chat whose summary is wanted; ``is_reset``: whether its context was ever
        begun afresh.
        """
        if budget <= 0 and session_pk is None:
            return MemoryContext()
        meaning = await self._meaning(viewer, text if budget > 0 else "")
        return await self._record.submit(
            recall_notes,
            RecallRequest(viewer, text, budget, session_pk, meaning, is_reset),
        )

    async def _meaning(self, viewer: NoteViewer, words: str) -> TextVector:
        """The meaning of ``words``, asked for only where it can be compared with that of a note."""
        embedder = self._find_embedder()
        if embedder is None or not words.strip():
            return TextVector()
        has_any = await self._record.submit(vector_store.has_visible_vectors, viewer, embedder.name)
        return await embed_message(words, embedder) if has_any else TextVector()
