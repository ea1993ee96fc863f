"""Sending what operators write as the bot: in each chat one after the other, in the order in which
it was put on record."""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass

from agent.domain.errors import ClaimLost
from agent.domain.states import Claim, MessageState
from agent.domain.types import ChatAddress, Delivery, Outbox
from agent.record.record import Record
from agent.record.run_journal import RunJournal
from agent.record.runs.replies import SendResult
from agent.record.waiting.hand_messages import (
    HandBatch,
    claim_hand_messages,
    mark_hand_message_sent,
    settle_hand_message,
)
from agent.run.message_sender import ChatFloors, MessageSender
from tools.error_boundary import capture_error
from tools.tasks import end_tasks

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HandJournal(RunJournal):
    """What becomes of messages that no run makes. They are this process's as long as their rows
    say so."""

    def mark_sent(self, pk: int, echo: str) -> "asyncio.Future[int]":
        return asyncio.ensure_future(self._mark_sent(pk, echo))

    def settle(self, outcome: SendResult) -> None:
        self.record.submit(settle_hand_message, outcome, self.record.process_id)

    async def _mark_sent(self, pk: int, echo: str) -> int:
        sent = (pk, self.record.process_id, echo)
        marked = await self.record.submit(mark_hand_message_sent, *sent)
        if isinstance(marked, ClaimLost):
            raise marked
        return marked


class HandMessages:
    """The messages of operators that this process sends. Used from one event loop."""

    def __init__(self, record: Record, outbox: Outbox, floors: ChatFloors) -> None:
        self._record = record
        self._outbox = outbox
        self._floors = floors
        self._waiting: dict[ChatAddress, deque[HandBatch]] = {}
        self._workers: dict[ChatAddress, asyncio.Task[None]] = {}
        self._is_open = True

    def look(self) -> None:
        """Take what is on record to be sent, and is nobody's. Returns at once."""
        if self._is_open:
            claimed = self._record.submit(claim_hand_messages, self._record.process_id)
            claimed.add_done_callback(self._on_claimed)

    async def drain(self, seconds: float) -> None:
        """Begin nothing more; what is not sent within ``seconds`` stays on record for the next
        start."""
        self._is_open = False
        await end_tasks(self._workers.values(), seconds)

    def _on_claimed(self, future: "asyncio.Future[list[HandBatch]]") -> None:
        if future.cancelled():
            return
        if error := future.exception():
            logger.error("What operators wrote could not be read from the record: %s", error)
            return
        for batch in future.result() if self._is_open else ():
            self._waiting.setdefault(batch.chat, deque()).append(batch)
            if batch.chat not in self._workers:
                work = self._work(batch.chat)
                self._workers[batch.chat] = asyncio.create_task(work, name="by hand")

    async def _work(self, chat: ChatAddress) -> None:
        try:
            while self._is_open and (batches := self._waiting.get(chat)):
                await self._send(batches.popleft())
        finally:
            del self._workers[chat]
            self._waiting.pop(chat, None)

    async def _send(self, batch: HandBatch) -> None:
        """Send ``batch``. What goes wrong here leaves a message behind of which nobody knows
        whether it arrived."""
        journal = HandJournal(self._record, Claim(0))
        manners = self._record.live.current.manners.find(batch.chat)
        sender = MessageSender(
            journal,
            self._outbox,
            batch.chat,
            session_pk=batch.session_pk,
            temp_group_id=batch.temp_group_id,
            sends_per_minute=manners.sends_per_minute,
            floors=self._floors,
        )
        with capture_error() as attempt:
            journal.settle(await sender.resend(batch.messages))
        if attempt.error is None or isinstance(attempt.error, ClaimLost):
            return
        logger.error("What an operator wrote could not be sent", exc_info=attempt.error)
        lost = Delivery(MessageState.UNKNOWN, error=type(attempt.error).__name__)
        for message in batch.messages:
            journal.settle(SendResult(message.pk, lost))
