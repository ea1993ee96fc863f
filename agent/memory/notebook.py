"""Memory as the rest of the agent uses it: one awaitable call for each thing to note or to look up."""

from dataclasses import replace

from agent.llm.embeddings import Embedder
from agent.memory.audience import Viewer
from agent.memory.background import Background
from agent.memory.embedding import meaning_of
from agent.memory.relevance import Recollection
from agent.record import Record
from agent.store import note_vectors, notes
from agent.store import recall as recalling
from agent.store.note_vectors import Meaning


class Notebook:
    """The notes, through the record's one thread. Every method returns once its commit is done.

    After cancellation of a method the commit may still happen.
    """

    def __init__(self, record: Record, embedder: Embedder | None = None) -> None:
        self._record = record
        self._embedder = embedder

    async def remember(self, wish: notes.NewNote) -> notes.Written:
        return await self._record.submit(notes.remember, wish)

    async def forget(self, wish: notes.Forgetting) -> notes.Fate:
        return await self._record.submit(notes.forget, wish)

    async def find(self, search: notes.Search) -> list[Recollection]:
        meaning = await self._meaning(search.viewer, search.words)
        return await self._record.submit(notes.find, replace(search, meaning=meaning))

    async def people_named(self, viewer: Viewer, name: str) -> tuple[str, ...]:
        """Ids of those who go by ``name`` in this chat, the last speaker first."""
        return await self._record.submit(notes.people_named, (viewer, name))

    async def profile(self, viewer: Viewer, person_id: str, limit: int) -> notes.Person:
        return await self._record.submit(notes.profiles, (viewer, person_id, limit))

    async def recall(self, viewer: Viewer, text: str, *, budget: int, session_pk: int | None = None) -> Background:
        """What the model should have in mind for ``text``; with a budget of 0 and no session nothing is asked.

        ``session_pk``: the chat whose summary is wanted.
        """
        if budget <= 0 and session_pk is None:
            return Background()
        meaning = await self._meaning(viewer, text if budget > 0 else "")
        return await self._record.submit(recalling.recall, recalling.Recall(viewer, text, budget, session_pk, meaning))

    async def _meaning(self, viewer: Viewer, words: str) -> Meaning:
        """The meaning of ``words``, asked for only where it can be compared with that of a note."""
        if self._embedder is None or not words.strip():
            return Meaning()
        has_any = await self._record.submit(note_vectors.any_meaning, (viewer, self._embedder.name))
        return await meaning_of(words, self._embedder) if has_any else Meaning()
