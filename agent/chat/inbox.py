"""The inbox: each chat's messages one at a time, in the order they came; chats side by side.

The queues here only point at rows. What is lost with them, when the process dies, is
found again in the record.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import inf
from typing import cast

from django.utils import timezone

from agent.chat.conversation import ConversationHandler
from agent.chat.message_run import QueuedMessage, from_record, merge, waits_until
from agent.domain.errors import ClaimLost
from agent.domain.states import MessageReason, MessageState
from agent.domain.types import ChatAddress, IncomingMessage
from agent.llm.spending import SpendScope
from agent.record.arrivals.arrivals import AcceptedMessage, MessageArrival, refuse_messages
from agent.record.chats.chat_record import RecalledMessage
from agent.record.record import Record
from agent.record.runs.merged import HeldMessage, merge_messages
from agent.record.sums.tallies import person_subject
from agent.record.waiting.recovery import (
    PendingMessage,
    claim_messages,
    find_held_messages,
    give_up_messages,
    is_next_in_session,
    reclaim_messages,
    release_messages,
)
from agent.record.waiting.stops import stop_answer, stop_chat
from tools import metrics
from tools.error_boundary import LogLimit, capture_error
from tools.processes import crash_points
from tools.tasks import end_tasks
from tools.time_limits import TIME_LIMITS


class ChatQueues:
    """The messages that wait in each chat, in the order of their rows."""

    def __init__(self) -> None:
        self._queues: dict[ChatAddress, deque[QueuedMessage]] = {}
        self.total = 0
        """How many wait in all chats."""

    def put(self, job: QueuedMessage) -> None:
        """Put ``job`` where it belongs by the order of the chat, which is that of the rows."""
        queue = self._queues.setdefault(job.pending.message.chat, deque())
        index = len(queue)
        while index and queue[index - 1].pk > job.pk:
            index -= 1
        queue.insert(index, job)
        self.total += 1

    def first(self, chat: ChatAddress) -> QueuedMessage | None:
        """What is to be answered next in ``chat``."""
        queue = self._queues.get(chat)
        return queue[0] if queue else None

    def take(self, chat: ChatAddress) -> QueuedMessage:
        """The same, which waits no more."""
        self.total -= 1
        queue = self._queues[chat]
        job = queue.popleft()
        if not queue:  # an empty one takes 760 bytes for as long as the message is answered
            del self._queues[chat]
        return job

    def count(self, chat: ChatAddress) -> int:
        return len(self._queues.get(chat, ()))

    def drop(self, chat: ChatAddress, pk: int) -> None:
        """The message with this key waits no more, if it did."""
        for job in list(self._queues.get(chat, ())):
            if job.pk == pk:
                self._queues[chat].remove(job)
                self.total -= 1

    def forget(self, chat: ChatAddress) -> None:
        """Nothing waits in ``chat`` any more."""
        self.total -= len(self._queues.pop(chat, ()))

    def clear(self) -> None:
        """Nothing waits anywhere."""
        self._queues, self.total = {}, 0

    @property
    def keys(self) -> set[int]:
        """Those of all that wait."""
        return {job.pk for queue in self._queues.values() for job in queue}


#: How long a stopped answer may take to end, in seconds; then the record alone keeps it from going
#: on.
STOP_SECONDS = TIME_LIMITS.stop


def _own_task() -> asyncio.Task[None]:
    return cast("asyncio.Task[None]", asyncio.current_task())


@dataclass(slots=True, eq=False)
class AnswerUnderWay:
    """A message that a task answers, or several of one person that it answers together. ``group``
    is empty once all of them were recalled."""

    group: list[QueuedMessage]
    task: asyncio.Task[None] = field(default_factory=_own_task)
    is_gathering: bool = False
    """Whether further messages are still awaited."""
    reason: MessageReason | None = None
    """Why it is stopped; None while it is not."""
    _is_ended: bool = False
    _end: asyncio.Event | None = None
    """Told of the end, once somebody waits for it."""

    @property
    def is_only_stopped(self) -> bool:
        """Whether the task was cancelled for the stop, and for nothing else."""
        return self.reason is not None and self.task.cancelling() == 1

    @property
    def keys(self) -> set[int]:
        """Those of all its messages."""
        return {one.pk for job in self.group for one in (job, *job.earlier)}

    @property
    def askers(self) -> set[str]:
        """Who is answered."""
        return {one.pending.message.sender_id for one in self.group}

    async def stop(self, reason: MessageReason) -> bool:
        """Cancel what the task does now; True once that has ended, False if it does not end in
        time, or has ended without an end on record: then the task waits to try again."""
        if self._is_ended:
            self.reason = self.reason or reason
            return False
        if self.reason is None:
            self.reason = reason
            self.task.cancel()
        self._end = self._end or asyncio.Event()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._end.wait()
        except TimeoutError:
            return False
        return True

    def end(self) -> None:
        """The task goes on to something else; where it was cancelled for the stop, it may."""
        if self.reason is not None:
            self.task.uncancel()
        self._is_ended = True
        if self._end is not None:
            self._end.set()


logger = logging.getLogger(__name__)
limit = LogLimit(logger)

#: Messages of one chat that may wait behind the one being answered; more are refused, on record.
CHAT_LIMIT = 100
#: Messages that may wait in one process.
TOTAL_LIMIT = 20_000
#: Pause before looking again whether another process is done with a chat, in seconds.
TURN_PAUSE = TIME_LIMITS.turn_pause
#: Commands that are obeyed at the same time, beside the queues; more wait in those of their chats.
COMMANDS_AT_ONCE = 20
#: How often a message is retried whose run has no recorded end, before it fails.
TRIES = 3


class Inbox:
    """Takes messages in, and keeps one worker task for every chat with something to do."""

    def __init__(
        self,
        record: Record,
        conversations: ConversationHandler,
        foresee: Callable[[SpendScope], None] = lambda who: None,
    ) -> None:
        """``foresee`` is told who a message that comes in is probably answered for."""
        self.record = record
        self.shares_database = False
        """Whether other processes may work on the same chats."""
        self._conversations = conversations
        self._foresee = foresee
        self.queues = ChatQueues()
        self._workers: dict[ChatAddress, asyncio.Task[None]] = {}
        self._under_way: dict[ChatAddress, AnswerUnderWay] = {}
        self._commands: dict[asyncio.Task[None], QueuedMessage] = {}
        self._arriving: Counter[ChatAddress] = Counter()
        self._claiming: Counter[str] = Counter()
        self._unclaimed: set[str] = set()
        """Accounts of which messages may wait that could not be claimed yet."""
        self._side_tasks: set[asyncio.Future[None]] = set()
        self._later: set[asyncio.Task[None]] = set()
        self._at_work: set[int] = set()
        self._failures: Counter[int] = Counter()
        """How often each message has found no end here."""
        self._missed: dict[int, int] = {}
        self._is_open = True
        conversations.pauses.has_more = lambda chat: self.queues.count(chat) > 0
        conversations.stop_answer = self.stop

    def receive_message(
        self, message: IncomingMessage, received_at: datetime | None = None
    ) -> None:
        """Put ``message`` on record and, if it is to be answered, in its chat's queue. Returns at
        once."""
        chat = message.chat
        plan = self._conversations.build_run_plan(message) if self._is_idle(chat) else None
        self._arriving[chat] += 1
        arrival = MessageArrival(message, received_at or timezone.now(), plan)
        committed = self.record.submit_batched(self.record.arrivals.accept_messages, arrival)
        committed.add_done_callback(partial(self._on_accepted, message))
        if plan and (message.mentions_bot or chat.kind == "private"):
            person = person_subject(chat, message.sender_id)
            self._foresee(SpendScope(chat=chat.place, person=person))

    def resume(self, account: str) -> None:
        """Claim the waiting messages of ``account`` that no process has claimed. Returns at
        once."""
        self._claiming[account] += 1
        read_manners = self.record.run_starter.read_manners
        claimed = self.record.submit(claim_messages, account, self.record.process_id, read_manners)
        claimed.add_done_callback(lambda future: self._on_claimed(account, future))

    def take_up(self, held: HeldMessage, seconds: float) -> None:
        """Have a message that is claimed by this process answered after so many seconds, as it is
        on record then. Returns at once; when the process ends before, another one takes it up."""
        if not self._is_open:
            return
        task = asyncio.get_running_loop().create_task(self._take_up(held, seconds), name="event")
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def abandon(self) -> None:
        """Stop all work at once: this process was taken for dead, and others have claimed its
        messages."""
        workers, self._workers, self._under_way = list(self._workers.values()), {}, {}
        workers += [*self._commands, *self._later]
        self.queues.clear()
        await end_tasks(workers)

    async def stop(
        self,
        chat: ChatAddress,
        asker: str | None = None,
        reason: MessageReason = MessageReason.STOPPED,
    ) -> bool:
        """Stop the answer under way in ``chat``, in whatever process, to ``asker`` unless that is
        None; whether there was one."""
        work = self._under_way.get(chat)
        if work is None or work.task is asyncio.current_task():
            return await self.record.submit(stop_chat, chat, reason, asker)
        if is_stopped := asker is None or asker in work.askers:
            await self._stop_work(work, reason)
        return is_stopped

    async def let_go(self, chat: ChatAddress, pks: Collection[int], reason: MessageReason) -> None:
        """Stop the answer under way, if it is to one of these: their end is on record already."""
        work = self._under_way.get(chat)
        if work is not None and work.keys & set(pks):
            await self._stop_work(work, reason)

    async def drop_recalled(self, recalled: Sequence[RecalledMessage]) -> None:
        """Do not answer what was recalled, nor go on with the answer to it; what is merged with it
        is answered without it, unless something was said."""
        for one in recalled:
            if one.merged_into or one.state in (MessageState.WAITING, MessageState.RUNNING):
                await self._drop(one)

    async def audit(self) -> None:
        """Release messages that are claimed by this process on record but that no worker here
        holds. There should be none; one that is found twice in a row would block its chat."""
        held = await self.record.submit(find_held_messages, self.record.process_id)
        known = self._at_work | self.queues.keys
        missed = {pk: number for pk, number in held.items() if pk not in known}
        for pk, number in missed.items():
            if self._missed.get(pk) == number and pk not in self._at_work:
                logger.warning("Message %s was in nobody's hands; it is taken up again", pk)
                await self.record.submit_batched(release_messages, HeldMessage(pk, number))
        self._missed = missed

    async def drain(self, seconds: float) -> None:
        """Begin nothing more; give what runs ``seconds``, then give it back to the record."""
        self._is_open = False
        for task in self._later:
            task.cancel()
        for chat, work in self._under_way.items():
            if work.is_gathering:
                self._conversations.pauses.wake(chat)
        await end_tasks([*self._workers.values(), *self._commands, *self._later], seconds)
        await asyncio.gather(*self._side_tasks, return_exceptions=True)

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
        metrics.labelled(
            metrics.MESSAGES, accepted.decision.state.value, accepted.decision.reason.value
        ).inc()
        if accepted.decision.opens_loop:
            chat, why = message.chat, accepted.decision.detail
            told = (chat.account, message.sender_id, chat.address, why)
            limit.warn(told, "Account %s: silence towards %s in %s: %s", *told)
        if accepted.decision.is_to_be_answered:
            crash_points.hit_crash_point("message_committed")
            self._enqueue(QueuedMessage(accepted.to_pending(message), accepted.begun))

    async def _take_up(self, held: HeldMessage, seconds: float) -> None:
        self._at_work.add(held.message_pk)
        try:
            await asyncio.sleep(seconds)
            found = await self.record.submit(reclaim_messages, held, self.record.process_id)
        finally:
            self._at_work.discard(held.message_pk)
        if found is not None:
            self._enqueue(from_record(found))

    def _is_idle(self, chat: ChatAddress) -> bool:
        """Whether nothing of ``chat`` is under way anywhere, or about to be found left over."""
        busy = chat in self._workers or chat in self._arriving or self._find_commands(chat)
        return not busy and self._holds_all(chat.account)

    def _holds_all(self, account: str) -> bool:
        """Whether this process has claimed all that waits for ``account``. At its end it claims
        nothing more."""
        is_claiming = self._claiming[account] or account in self._unclaimed
        return self._is_open and not (self.shares_database or is_claiming)

    def _on_claimed(self, account: str, future: "asyncio.Future[list[PendingMessage]]") -> None:
        self._claiming[account] -= 1
        if future.cancelled():
            return
        if error := future.exception():
            self._unclaimed.add(account)
            logger.error("What waits could not be read from the record: %s", error)
            return
        for pending in future.result():
            self._enqueue(from_record(pending))
        if not future.result():
            self._unclaimed.discard(account)
        elif self._is_open:
            self.resume(account)  # there may be more

    def _enqueue(self, job: QueuedMessage) -> None:
        """Have ``job`` answered: a command at once, anything else when its chat comes to it."""
        if not self._is_open:
            return  # it stays on record, to be claimed again
        chat = job.pending.message.chat
        if job.pending.command and len(self._commands) < COMMANDS_AT_ONCE:
            self._obey(job)
            return
        is_full = self.queues.count(chat) >= CHAT_LIMIT or self.queues.total >= TOTAL_LIMIT
        if is_full and not job.resumed:
            logger.warning(
                "Message %s in %s is refused: too many are waiting", job.pending.pk, chat.address
            )
            refused = self.record.submit_batched(refuse_messages, job.pending.pk)
            self._side_tasks.add(refused)
            refused.add_done_callback(self._side_tasks.discard)
            return
        if not job.resumed:
            job = job._replace(
                prefetch=self._conversations.prefetch_media(job.pending),
                arrived=asyncio.get_running_loop().time(),
            )
        self.queues.put(job)
        self._conversations.pauses.wake(chat)
        if chat not in self._workers:
            self._workers[chat] = asyncio.get_running_loop().create_task(
                self._work(chat), name=chat.address
            )

    def _obey(self, job: QueuedMessage) -> None:
        """Answer a command beside the queue of its chat, also while an answer is under way."""
        self._at_work.add(job.pk)
        task = asyncio.get_running_loop().create_task(self._answer_command(job), name="command")
        self._commands[task] = job
        task.add_done_callback(self._commands.pop)

    async def _answer_command(self, job: QueuedMessage) -> None:
        await self._answer(AnswerUnderWay([job]))

    async def _work(self, chat: ChatAddress) -> None:
        """Answer what waits in ``chat``, then end."""
        try:
            while self._is_open and (job := self.queues.first(chat)):
                if not await self._is_next(job.pending):
                    # Another process is at an earlier message, or leaves one that is put before
                    # this one here.
                    await asyncio.sleep(TURN_PAUSE)
                elif self.queues.first(chat) is job:  # and was not recalled meanwhile
                    work = self._under_way[chat] = AnswerUnderWay([self._take(chat)])
                    await self._answer(work)
                    self._under_way.pop(chat, None)
        finally:
            if self._workers.get(chat) is asyncio.current_task():
                self._under_way.pop(chat, None)
                del self._workers[chat]
                self.queues.forget(chat)

    def _take(self, chat: ChatAddress) -> QueuedMessage:
        job = self.queues.take(chat)
        self._at_work.add(job.pk)
        return job

    async def _answer(self, work: AnswerUnderWay) -> None:
        """Answer what ``work`` holds, with what follows and belongs to it; what has no recorded end
        is released and claimed again."""
        attempt = capture_error()
        try:
            if work.group[0].window:
                await self._gather(work)
            for job in work.group:  # one, or none any more
                with capture_error() as attempt:
                    await self._conversations.answer_message(
                        job.pending,
                        job.active,
                        resumed=job.resumed,
                        prefetch=job.prefetch,
                        earlier=job.earlier,
                    )
        except asyncio.CancelledError:
            await self._give_back(work)
            if not work.is_only_stopped:
                raise
        else:
            if work.reason is not None:  # something kept it from being cancelled
                await self._give_back(work)
        finally:
            self._at_work -= work.keys
            work.end()
        if attempt.error is None or isinstance(attempt.error, ClaimLost) or work.reason:
            for job in work.group if self._failures else ():
                self._failures.pop(job.pk, None)
        else:
            await self._try_later(work.group[0].pending, attempt.error)

    async def _gather(self, work: AnswerUnderWay) -> None:
        """Wait for what the same person says next, and merge it on record into one."""
        chat = work.group[0].pending.message.chat
        work.is_gathering = True
        while self._is_open and (group := work.group):
            while (one := self.queues.first(chat)) and one.follows(group):
                group.append(self._take(chat))
            left = waits_until(group) - asyncio.get_running_loop().time()
            if one or left <= 0:
                break
            await self._conversations.pauses.pause(chat, left, breakable=True)
        work.is_gathering = False
        if not self._is_open:
            await self._give_back(work)
            self._let_go(work, ())
        elif len(work.group) > 1:
            held = tuple(HeldMessage(job.pk, job.pending.claim_number) for job in work.group)
            kept = await self.record.submit(merge_messages, held)
            self._let_go(work, merge([job for job in work.group if job.pk in kept]))
            if work.group and not await self._is_next(work.group[0].pending):
                self.queues.put(work.group[0])  # another process is at one that came between
                self._let_go(work, ())

    def _let_go(self, work: AnswerUnderWay, left: Sequence[QueuedMessage]) -> None:
        """Have no more than ``left`` in hand."""
        self._at_work -= work.keys
        work.group = list(left)
        self._at_work |= work.keys

    async def _give_back(self, work: AnswerUnderWay) -> None:
        """What was cancelled goes back to the record, to be taken up again; what was stopped, to
        its end."""
        for job in work.group:
            if work.reason is None:
                held = HeldMessage(job.pk, job.pending.claim_number)
                await self.record.submit_batched(release_messages, held)
            else:
                await self._stop_on_record(job.pending.message.chat, job.pk, work.reason)

    async def _stop_on_record(self, chat: ChatAddress, pk: int, reason: MessageReason) -> None:
        outcome = await self.record.submit(stop_answer, pk, reason)
        if outcome.leaves_more:
            self.resume(chat.account)

    async def _stop_work(self, work: AnswerUnderWay, reason: MessageReason) -> None:
        """Stop what is under way; what does not end in time can write and send nothing more, and
        what waits to be tried again is not."""
        if not await work.stop(reason):
            await self._give_back(work)

    async def _drop(self, hit: RecalledMessage) -> None:
        """Do not answer a message that was recalled, nor go on with the answer to it."""
        pk, work = hit.merged_into or hit.pk, self._under_way.get(hit.chat)
        if work is not None and hit.pk in work.keys:
            if not work.is_gathering:
                await self._stop_work(work, MessageReason.RECALLED)
                return
            self._let_go(work, [job for job in work.group if job.pk != pk])
            self._conversations.pauses.wake(hit.chat)
        self.queues.drop(hit.chat, pk)
        await self._stop_on_record(hit.chat, pk, MessageReason.RECALLED)

    async def _try_later(self, pending: PendingMessage, error: Exception) -> None:
        """The run came to no recorded end: it is taken up again, before any later message of its
        chat."""
        self._failures[pending.pk] += 1
        if self._failures[pending.pk] >= TRIES:
            logger.error("Message %s is given up after %d tries", pending.pk, TRIES, exc_info=error)
            del self._failures[pending.pk]
            held = HeldMessage(pending.pk, pending.claim_number)
            await self.record.submit(give_up_messages, held, f"{type(error).__name__}: {error}")
            return
        logger.error("Message %s found no end; it is taken up again", pending.pk, exc_info=error)
        await asyncio.sleep(TURN_PAUSE)
        held = HeldMessage(pending.pk, pending.claim_number)
        if again := await self.record.submit(reclaim_messages, held, self.record.process_id):
            self._enqueue(from_record(again))
        else:
            self._failures.pop(pending.pk, None)

    async def _is_next(self, pending: PendingMessage) -> bool:
        """Whether nothing earlier of the same chat is still worked on: no command here, which is
        waited for, and nothing in another process, or on record that is still to be claimed."""
        chat = pending.message.chat
        if commands := self._find_commands(chat, before=pending.pk):
            await asyncio.wait(commands)
        return self._holds_all(chat.account) or await self.record.submit(
            is_next_in_session, pending.pk, pending.session_pk
        )

    def _find_commands(self, chat: ChatAddress, before: float = inf) -> list[asyncio.Task[None]]:
        """The commands in ``chat`` that are being obeyed, ``before`` the message with this key."""
        return [
            task
            for task, job in self._commands.items()
            if job.pending.message.chat == chat and job.pk < before
        ]
