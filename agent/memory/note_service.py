"""Memory as the rest of the agent uses it: one awaitable call for each thing to note or to look
up."""

from dataclasses import replace

from agent.domain.notes import NoteViewer
from agent.memory import notes_store, vector_store
from agent.memory import recall as recalling
from agent.memory.embedding import FindEmbedder, embed_message
from agent.memory.prompt_block import MemoryContext
from agent.memory.relevance import RecalledNote
from agent.memory.vector_store import TextVector
from agent.record.record import Record


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

    async def forget(self, wish: notes_store.DeleteNote) -> notes_store.NoteResult:
        return await self._record.submit(notes_store.delete_notes, wish)

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
            recalling.recall_notes,
            recalling.RecallRequest(viewer, text, budget, session_pk, meaning, is_reset),
        )

    async def _meaning(self, viewer: NoteViewer, words: str) -> TextVector:
        """The meaning of ``words``, asked for only where it can be compared with that of a note."""
        embedder = self._find_embedder()
        if embedder is None or not words.strip():
            return TextVector()
        has_any = await self._record.submit(vector_store.has_visible_vectors, viewer, embedder.name)
        return await embed_message(words, embedder) if has_any else TextVector()
