"""The memory of one server process: storing and recalling notes, and the background jobs."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from agent.domain.notes import NoteViewer
from agent.domain.types import ChatAddress
from agent.memory.background_jobs import FindModel, MemoryJobs, SummaryPolicy
from agent.memory.embedding import FindEmbedder, run_note_embedding
from agent.memory.note_service import NoteService
from agent.memory.prompt_block import MemoryContext
from agent.memory.review import run_note_review
from agent.record.record import Record


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """What the operator wants of the memory; 0 switches each part off.

    ``chars``: of notes in a request; ``review_hours``: between reviews of the notes.
    """

    chars: int
    habits: SummaryPolicy
    review_hours: int = 0


class MemoryService:
    """Notes for the tools and the prompt, and the work on them. ``find_model`` and
    ``find_embedder`` tell who is asked at a moment; None where nobody can be."""

    def __init__(
        self,
        record: Record,
        settings: MemorySettings,
        find_model: FindModel = lambda: None,
        find_embedder: FindEmbedder | None = None,
    ) -> None:
        self.notebook = NoteService(record, find_embedder or (lambda: None))
        self._record = record
        self._settings = settings
        self._find_model = find_model
        self._find_embedder = find_embedder
        self._upkeep = MemoryJobs(record, find_model, settings.habits)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the background tasks of the process. Must be called once, on the serving event
        loop."""
        work: list[Coroutine[Any, Any, None]] = []
        if self._settings.review_hours:
            work.append(
                run_note_review(self._record, self._find_model, self._settings.review_hours)
            )
        if self._find_embedder is not None:
            work.append(run_note_embedding(self._record, self._find_embedder))
        self._tasks = [asyncio.get_running_loop().create_task(one, name="memory") for one in work]

    async def build_context(
        self,
        session_pk: int,
        chat: ChatAddress,
        sender_id: str,
        text: str,
        *,
        has_notes: bool = True,
        is_reset: bool = False,
    ) -> MemoryContext:
        """The memory context of a message; the database is not queried if all features are off.

        ``has_notes``: whether there is any note at all; ``is_reset``: whether the chat's context
        was ever begun afresh.
        """
        summarised = session_pk if self._settings.habits.summary_after else None
        if summarised is None and not has_notes:
            return MemoryContext()
        viewer = build_chat_viewer(chat, sender_id)
        return await self.notebook.recall(
            viewer,
            text,
            budget=self._settings.chars,
            session_pk=summarised,
            is_reset=is_reset,
        )

    def after_turn(self, session_pk: int, chat: ChatAddress) -> None:
        """A message of this chat was answered, and is on record as such. Never waits, never
        raises."""
        self._upkeep.after_turn(session_pk, build_chat_viewer(chat, ""))

    async def drain(self, seconds: float) -> None:
        """Give running jobs ``seconds``; those that do not finish are due again later."""
        await self._upkeep.drain(seconds)

    async def close(self) -> None:
        """End everything that was begun, before the record is closed."""
        await self.drain(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def build_chat_viewer(chat: ChatAddress, sender_id: str) -> NoteViewer:
    """Who sees what is shown in ``chat`` when ``sender_id`` speaks there."""
    return NoteViewer(chat.platform, chat.account, chat.key, sender_id)
