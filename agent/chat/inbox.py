"""The inbox: each chat's messages one at a time, in the order they came; chats side by side.

The queues here only point at rows. What is lost with them, when the process dies, is
found again in the record.
"""

import asyncio
import logging
from collections import Counter, deque
from datetime import datetime
from typing import NamedTuple

from django.utils import timezone

from agent.chat.conversation import ConversationHandler
from agent.domain.errors import ClaimLost
from agent.domain.types import ChatAddress, IncomingMessage
from agent.media.pipeline import PrefetchTask
from agent.record.arrivals import AcceptedMessage, MessageArrival, refuse_messages
from agent.record.record import Record
from agent.record.recovery import (
    ClaimMessages,
    HeldMessage,
    PendingMessage,
    claim_messages,
    find_held_messages,
    give_up_messages,
    is_next_in_session,
    reclaim_messages,
    release_messages,
)
from agent.record.runs import ActiveRun
from tools.error_boundary import capture_error
from tools.log_limit import LogLimit
from tools.processes import crash_points
from tools.time_limits import TIME_LIMITS

logger = logging.getLogger(__name__)
limit = LogLimit(logger)

#: Messages of one chat that may wait behind the one being answered; more are refused, on record.
CHAT_LIMIT = 100
#: Messages that may wait in one process.
TOTAL_LIMIT = 20_000
#: Pause before looking again whether another process is done with a chat, in seconds.
TURN_PAUSE = TIME_LIMITS.turn_pause
#: How often a message is retried whose run has no recorded end, before it fails.
TRIES = 3


class QueuedMessage(NamedTuple):
    """A message to be answered. ``active``: its run, if that began with the message's own commit.

    ``prefetch`` fetches its media since it arrived, for their links expire.
    """

    pending: PendingMessage
    active: ActiveRun | None = None
    resumed: bool = False
    prefetch: PrefetchTask | None = None


class Inbox:
    """Takes messages in, and keeps one worker task for every chat with something to do."""

    def __init__(self, record: Record, conversations: ConversationHandler) -> None:
        self.record = record
        self.shares_database = False
        """Whether other processes may work on the same chats."""
        self._conversations = conversations
        self._queues: dict[ChatAddress, deque[QueuedMessage]] = {}
        self._workers: dict[ChatAddress, asyncio.Task[None]] = {}
        self._arriving: Counter[ChatAddress] = Counter()
        self._claiming: Counter[str] = Counter()
        self._side_tasks: set[asyncio.Future[None]] = set()
        self._waiting_count = 0
        self._at_work: set[int] = set()
        self._failures: Counter[int] = Counter()
        """How often each message has found no end here."""
        self._missed: dict[int, int] = {}
        self._is_open = True
        conversations.pauses.has_more = lambda chat: bool(self._queues.get(chat))

    def receive_message(
        self, message: IncomingMessage, received_at: datetime | None = None
    ) -> None:
        """Put ``message`` on record and, if it is to be answered, in its chat's queue. Returns at
        once."""
        chat = message.chat
        plan = self._conversations.build_run_plan(message) if self._is_idle(chat) else None
        self._arriving[chat] += 1
        arrival = MessageArrival(message, received_at or timezone.now(), plan)
        committed = self.record.submit(self.record.arrivals.accept_messages, arrival)
        committed.add_done_callback(lambda future: self._on_accepted(message, future))

    def resume(self, account: str) -> None:
        """Claim the waiting messages of ``account`` that no process has claimed. Returns at
        once."""
        self._claiming[account] += 1
        claimed = self.record.submit(claim_messages, ClaimMessages(account, self.record.process_id))
        claimed.add_done_callback(lambda future: self._on_claimed(account, future))

    async def abandon(self) -> None:
        """Stop all work at once: this process was taken for dead, and others have claimed its
        messages."""
        workers, self._workers, self._queues = list(self._workers.values()), {}, {}
        self._waiting_count = 0
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def audit(self) -> None:
        """Release messages that are claimed by this process on record but that no worker here
        holds.

        There should be none. One that is found twice in a row is released: otherwise it would block
        its chat until the next start.
        """
        held = await self.record.submit(find_held_messages, self.record.process_id)
        known = self._at_work | {job.pending.pk for queue in self._queues.values() for job in queue}
        missed = {pk: number for pk, number in held.items() if pk not in known}
        for pk, number in missed.items():
            if self._missed.get(pk) == number and pk not in self._at_work:
                logger.warning("Message %s was in nobody's hands; it is taken up again", pk)
                await self.record.submit(release_messages, HeldMessage(pk, number))
        self._missed = missed

    async def drain(self, seconds: float) -> None:
        """Begin nothing more; give what runs ``seconds``, then give it back to the record."""
        self._is_open = False
        workers = list(self._workers.values())
        if workers:
            await asyncio.wait(workers, timeout=seconds)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, *self._side_tasks, return_exceptions=True)

    def _on_accepted(
        self, message: IncomingMessage, future: "asyncio.Future[AcceptedMessage]"
    ) -> None:
        self._arriving[message.chat] -= 1
        if not self._arriving[message.chat]:
            del self._arriving[message.chat]
        if future.cancelled():
            return
        if error := future.exception():
            logger.critical(
                "A message in %s could not be recorded and is lost: %s", message.chat.address, error
            )
            return
        accepted = future.result()
        if accepted.decision is None:
            logger.debug(
                "Message %s in %s was seen before", message.message_id, message.chat.address
            )
            return
        if accepted.decision.opens_loop:
            told = (
                message.chat.account,
                message.sender_id,
                message.chat.address,
                accepted.decision.detail,
            )
            limit.warn(told, "Account %s: silence towards %s in %s: %s", *told)
        if accepted.decision.is_to_be_answered:
            crash_points.hit_crash_point("message_committed")
            self._enqueue(QueuedMessage(accepted.to_pending(message), accepted.begun))

    def _is_idle(self, chat: ChatAddress) -> bool:
        """Whether nothing of ``chat`` is under way, here or elsewhere, or about to be found left
        over."""
        busy = chat in self._workers or chat in self._arriving or self._claiming[chat.account]
        return not busy and not self.shares_database

    def _on_claimed(self, account: str, future: "asyncio.Future[list[PendingMessage]]") -> None:
        self._claiming[account] -= 1
        if future.cancelled():
            return
        if error := future.exception():
            logger.error("What waits could not be read from the record: %s", error)
            return
        for pending in future.result():
            self._enqueue(QueuedMessage(pending, resumed=True))

    def _enqueue(self, job: QueuedMessage) -> None:
        """Put ``job`` where it belongs by the order of the chat, which is that of the rows."""
        if not self._is_open:
            return  # it stays on record, to be claimed again
        chat = job.pending.message.chat
        queue = self._queues.setdefault(chat, deque())
        if not job.resumed and (len(queue) >= CHAT_LIMIT or self._waiting_count >= TOTAL_LIMIT):
            logger.warning(
                "Message %s in %s is refused: too many are waiting", job.pending.pk, chat.address
            )
            self._keep(self.record.submit(refuse_messages, job.pending.pk))
            return
        if not job.resumed:
            job = job._replace(prefetch=self._conversations.prefetch_media(job.pending))
        place = len(queue)
        while place and queue[place - 1].pending.pk > job.pending.pk:
            place -= 1
        queue.insert(place, job)
        self._waiting_count += 1
        self._conversations.pauses.wake(chat)
        if chat not in self._workers:
            self._workers[chat] = asyncio.get_running_loop().create_task(
                self._work(chat), name=chat.address
            )

    async def _work(self, chat: ChatAddress) -> None:
        """Answer what waits in ``chat``, then end."""
        queue = self._queues[chat]
        try:
            while queue and self._is_open:
                if not await self._is_next(queue[0].pending):
                    # Another process is at an earlier message, or leaves one that is put before
                    # this one here.
                    await asyncio.sleep(TURN_PAUSE)
                    continue
                job = queue.popleft()
                self._waiting_count -= 1
                await self._answer(job)
        finally:
            if self._workers.get(chat) is asyncio.current_task():
                del self._workers[chat]
                del self._queues[chat]
                self._waiting_count -= len(queue)

    async def _answer(self, job: QueuedMessage) -> None:
        """Answer one message; one whose run has no recorded end is released and claimed again."""
        pending = job.pending
        self._at_work.add(pending.pk)
        try:
            with capture_error() as attempt:
                await self._conversations.answer_message(
                    pending, job.active, resumed=job.resumed, prefetch=job.prefetch
                )
        except asyncio.CancelledError:
            held = HeldMessage(pending.pk, pending.claim_number)
            await self.record.submit(release_messages, held)
            raise
        finally:
            self._at_work.discard(pending.pk)
        if attempt.error is None or isinstance(attempt.error, ClaimLost):
            self._failures.pop(pending.pk, None)
        else:
            await self._try_later(pending, attempt.error)

    async def _try_later(self, pending: PendingMessage, error: Exception) -> None:
        """The run came to no recorded end: it is taken up again, before any later message of its
        chat."""
        self._failures[pending.pk] += 1
        if self._failures[pending.pk] >= TRIES:
            logger.error("Message %s is given up after %d tries", pending.pk, TRIES, exc_info=error)
            del self._failures[pending.pk]
            held = HeldMessage(pending.pk, pending.claim_number)
            await self.record.submit(give_up_messages, (held, f"{type(error).__name__}: {error}"))
            return
        logger.error("Message %s found no end; it is taken up again", pending.pk, exc_info=error)
        await asyncio.sleep(TURN_PAUSE)
        held = HeldMessage(pending.pk, pending.claim_number)
        if again := await self.record.submit(reclaim_messages, (held, self.record.process_id)):
            self._enqueue(QueuedMessage(again, resumed=True))

    async def _is_next(self, pending: PendingMessage) -> bool:
        """Whether no other process is still at an earlier message of the same chat."""
        return not self.shares_database or await self.record.submit(
            is_next_in_session, (pending.pk, pending.session_pk)
        )

    def _keep(self, written: "asyncio.Future[None]") -> None:
        self._side_tasks.add(written)
        written.add_done_callback(self._side_tasks.discard)
