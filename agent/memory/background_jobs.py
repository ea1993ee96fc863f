"""Work on the memory behind the conversation: summaries of what fell out of the window, and notes
of what was said.

It never holds up an answer. What is due follows from the record, so that nothing is
lost with the process; what fails leaves everything as it was and is tried again later.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.domain.notes import NoteViewer
from agent.llm.requests.base import LLMClient, LLMRequest
from agent.memory import summary_store
from agent.memory.llm_prompts import (
    extracted_notes,
    extraction_request,
    summary_request,
    summary_text,
)
from agent.memory.summary_store import HistoryWindow, NewDigest
from agent.record.record import Record
from tools.error_boundary import capture_error

logger = logging.getLogger(__name__)

#: Chats that are read at a time.
SLOTS = 2
#: Seconds until a chat is read again after a failure, doubled with each one up to the second
#: figure.
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 3_600.0

#: What reads chats at this moment; None where nothing does.
FindModel = Callable[[], LLMClient | None]
ReadChat = Callable[[LLMClient, int, NoteViewer], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SummaryPolicy:
    """When something is done: ``summary_after`` messages that fell out of ``window``,
    ``extract_turns`` turns; 0 for never."""

    window: HistoryWindow
    summary_after: int = 0
    extract_turns: int = 0

    @property
    def every(self) -> int:
        """Turns of a chat after which the record is asked what is due; 0 for never."""
        turns = [max(1, self.summary_after // 2)] if self.summary_after else []
        return min([*turns, *([self.extract_turns] if self.extract_turns else [])], default=0)


class MemoryJobs:
    """Reads chats in the background, each by one task at a time, where there is a model for it.
    ``clock`` counts monotonic seconds."""

    def __init__(
        self,
        record: Record,
        find_model: FindModel,
        habits: SummaryPolicy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._record = record
        self._find_model = find_model
        self._habits = habits
        self._clock = clock
        self._turns: Counter[int] = Counter()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._pauses: dict[int, tuple[float, float]] = {}
        """By session: until when it is left alone after a failure, and for how long that is."""
        self._slots = asyncio.Semaphore(SLOTS)

    def after_turn(self, session_pk: int, chat: NoteViewer) -> None:
        """A message of this chat was answered: see whether there is enough to read, without waiting
        for it."""
        if not self._habits.every or self._find_model() is None:
            return
        self._turns[session_pk] += 1
        until, _ = self._pauses.get(session_pk, (0.0, 0.0))
        if (
            self._turns[session_pk] < self._habits.every
            or session_pk in self._tasks
            or self._clock() < until
        ):
            return
        del self._turns[session_pk]
        task = asyncio.get_running_loop().create_task(
            self._see_to(session_pk, chat), name=f"upkeep {session_pk}"
        )
        self._tasks[session_pk] = task
        task.add_done_callback(lambda _: self._tasks.pop(session_pk, None))

    async def drain(self, seconds: float) -> None:
        """Give running jobs ``seconds``, then cancel them: they are due again at the next start."""
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _see_to(self, session_pk: int, chat: NoteViewer) -> None:
        model = self._find_model()
        if model is None or not await self._record.has_tokens_left():
            return  # what is due now is due later as well
        async with self._slots:
            done = [
                await self._tried(read, model, session_pk, chat)
                for read in (self._summarise, self._take_notes)
            ]
        if all(done):
            self._pauses.pop(session_pk, None)
            return
        _, before = self._pauses.get(session_pk, (0.0, 0.0))
        pause = min(max(FIRST_PAUSE, 2 * before), LONGEST_PAUSE)
        self._pauses[session_pk] = (self._clock() + pause, pause)
        self._turns[session_pk] = self._habits.every

    async def _tried(
        self, read: ReadChat, model: LLMClient, session_pk: int, chat: NoteViewer
    ) -> bool:
        with capture_error() as attempt:
            await read(model, session_pk, chat)
        if attempt.error is not None:
            logger.warning("Chat %s was not read: %s", session_pk, attempt.error)
        return attempt.error is None

    async def _summarise(self, model: LLMClient, session_pk: int, _: NoteViewer) -> None:
        if not self._habits.summary_after:
            return
        wish = (session_pk, self._habits.window, self._habits.summary_after)
        if batch := await self._record.submit(summary_store.find_unsummarized, *wish):
            answer = await model.complete(LLMRequest(summary_request(batch)))
            text = summary_text(answer.text)
            digest = NewDigest(
                batch, model.name, text, (), answer.input_tokens, answer.output_tokens
            )
            await self._record.submit(summary_store.save_digests, digest)

    async def _take_notes(self, model: LLMClient, session_pk: int, chat: NoteViewer) -> None:
        if not self._habits.extract_turns:
            return
        if batch := await self._record.submit(
            summary_store.find_unread, session_pk, self._habits.extract_turns
        ):
            answer = await model.complete(LLMRequest(extraction_request(batch)))
            notes = extracted_notes(answer.text, batch, chat)
            digest = NewDigest(
                batch, model.name, "", notes, answer.input_tokens, answer.output_tokens
            )
            await self._record.submit(summary_store.save_digests, digest)
