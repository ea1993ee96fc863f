"""The inbox: each chat's messages one at a time, in the order they came; chats side by side.

The queues here only point at rows. What is lost with them, when the process dies, is
found again in the record.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from datetime import datetime
from typing import Any

from django.utils import timezone

from agent import faults
from agent.conversation import Conversations
from agent.record import Record
from agent.store.arrivals import Accepted, Arrival
from agent.store.recovery import Left
from agent.triggers import Rules
from agent.types import ChatAddress, IncomingMessage
from tools.boundary import survive

logger = logging.getLogger(__name__)

#: Messages of one chat that may wait behind the one being answered; more are refused, on record.
CHAT_LIMIT = 100
#: Messages that may wait in one process.
TOTAL_LIMIT = 20_000
#: Pause before looking again whether another process is done with a chat, in seconds.
TURN_PAUSE = 1.0


class Inbox:
    """Takes messages in, and keeps one worker task for every chat with something to do."""

    def __init__(self, record: Record, conversations: Conversations, rules: Rules) -> None:
        self.record = record
        self.shares_database = False
        """Whether other processes may work on the same chats."""
        self._conversations = conversations
        self._rules = rules
        self._queues: dict[ChatAddress, deque[tuple[Left, bool]]] = {}
        self._workers: dict[ChatAddress, asyncio.Task[None]] = {}
        self._side_tasks: set[asyncio.Task[None]] = set()
        self._waiting_count = 0
        self._is_open = True

    def accept(self, message: IncomingMessage, received_at: datetime | None = None) -> None:
        """Put ``message`` on record and, if it is to be answered, in its chat's queue. Returns at once."""
        committed = self.record.accept(Arrival(message, received_at or timezone.now(), self._rules))
        committed.add_done_callback(lambda future: self._on_accepted(message, future))

    def resume(self, account: str) -> None:
        """Take up what waits in the chats of ``account`` and is in nobody's hands. Returns at once."""
        self.record.claim(account).add_done_callback(self._on_claimed)

    async def drain(self, seconds: float) -> None:
        """Begin nothing more; give what runs ``seconds``, then give it back to the record."""
        self._is_open = False
        workers = list(self._workers.values())
        if workers:
            await asyncio.wait(workers, timeout=seconds)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, *self._side_tasks, return_exceptions=True)

    def _on_accepted(self, message: IncomingMessage, future: "asyncio.Future[Accepted]") -> None:
        if future.cancelled():
            return
        if error := future.exception():
            logger.critical("A message in %s could not be recorded and is lost: %s", message.chat.address, error)
            return
        accepted = future.result()
        if accepted.decision is None:
            logger.debug("Message %s in %s was seen before", message.message_id, message.chat.address)
        elif accepted.decision.is_to_be_answered:
            faults.reached("message_committed")
            self._enqueue(Left(accepted.pk, accepted.session_pk, message), resumed=False)

    def _on_claimed(self, future: "asyncio.Future[list[Left]]") -> None:
        if future.cancelled():
            return
        if error := future.exception():
            logger.error("What waits could not be read from the record: %s", error)
            return
        for left in future.result():
            self._enqueue(left, resumed=True)

    def _enqueue(self, left: Left, *, resumed: bool) -> None:
        if not self._is_open:
            return  # it stays on record as waiting
        queue = self._queues.setdefault(left.message.chat, deque())
        if not resumed and (len(queue) >= CHAT_LIMIT or self._waiting_count >= TOTAL_LIMIT):
            logger.warning("Message %s in %s is refused: too many are waiting", left.pk, left.message.chat.address)
            self._keep(self.record.refuse(left.pk))
            return
        queue.append((left, resumed))
        self._waiting_count += 1
        if left.message.chat not in self._workers:
            worker = asyncio.get_running_loop().create_task(self._work(left.message.chat), name=left.message.chat.address)
            self._workers[left.message.chat] = worker

    async def _work(self, chat: ChatAddress) -> None:
        """Answer what waits in ``chat``, then end."""
        queue = self._queues[chat]
        try:
            while queue and self._is_open:
                left, resumed = queue.popleft()
                self._waiting_count -= 1
                await self._answer(left, resumed=resumed)
        finally:
            del self._workers[chat]
            del self._queues[chat]
            self._waiting_count -= len(queue)

    async def _answer(self, left: Left, *, resumed: bool) -> None:
        try:
            with survive(logger, "Message %s found no end; it is taken up at the next start", left.pk):
                while not await self._is_next(left):  # noqa: ASYNC110 - the other is another process
                    await asyncio.sleep(TURN_PAUSE)
                await self._conversations.answer(left, resumed=resumed)
        except asyncio.CancelledError:
            await self.record.release(left.pk)
            raise

    async def _is_next(self, left: Left) -> bool:
        """Whether no other process is still at an earlier message of the same chat."""
        return not self.shares_database or await self.record.is_next(left.pk, left.session_pk)

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._side_tasks.add(task)
        task.add_done_callback(self._side_tasks.discard)
