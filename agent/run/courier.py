"""Handing the recorded messages of one run to the outbox."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from agent.domain.errors import MediaError
from agent.domain.states import MessageState
from agent.domain.types import ChatAddress, Delivery, Outbox
from agent.record.run_journal import RunJournal
from agent.record.runs.replies import SendResult
from agent.run.chat_floors import ChatFloors
from agent.run.echoes import new_echo
from agent.run.send_outcomes import ASLEEP, CUT_OFF, NO_FLOOR, NOT_CONNECTED, NOT_SENT
from tools import metrics
from tools.registry.time_limits import pause_timeouts
from tools.time_limits import TIME_LIMITS

State = MessageState

#: How long a final answer waits for a client that is not connected, in seconds.
ANSWER_PATIENCE = 300.0
#: How long a message sent by a tool waits for it: within the tool's own time limit.
TOOL_PATIENCE = TIME_LIMITS.tool_message
#: Pause before looking up again where an account is connected, if it was not there, in seconds.
MOVE_SECONDS = 0.2


R = TypeVar("R")
Segments = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message on record, about to be handed to the outbox."""

    pk: int
    segments: Segments
    echo: str
    is_answer: bool = True
    is_part: bool = False
    """Whether it is one of several that have the floor of their chat."""


class Courier:
    """Takes the messages of one run to one chat, each after it was put on record."""

    def __init__(
        self,
        journal: RunJournal,
        outbox: Outbox,
        chat: ChatAddress,
        floors: ChatFloors,
        temp_group_id: str,
    ) -> None:
        self._journal = journal
        self._outbox = outbox
        self._chat = chat
        self._floors = floors
        self._temp_group_id = temp_group_id

    async def on_record(self, written: "asyncio.Future[R]", *, is_answer: bool) -> R:
        """What is on record as sent from now on: the key of the message, or of the first of an
        answer's. When cancelled, the record is set right before the run is given back."""
        try:
            return await asyncio.shield(written)
        except asyncio.CancelledError:
            written.add_done_callback(lambda future: self._take_back(future, is_answer=is_answer))
            await asyncio.wait([written])
            raise

    def _take_back(self, written: "asyncio.Future[Any]", *, is_answer: bool) -> None:
        """What is on record as sent, and was cancelled before it was written: an answer is still to
        be given."""
        if not written.cancelled() and written.exception() is None:
            pks = written.result() if isinstance(written.result(), list) else [written.result()]
            delivery = Delivery(State.PENDING) if is_answer else NOT_SENT
            for pk in pks[:1] if is_answer else pks:
                self._journal.settle(SendResult(pk, delivery, is_speech=False))

    async def await_turn(self, message: Outgoing, seconds: float) -> None:
        """Wait for the turn of a pending message; no time limit of the run or the tool runs
        meanwhile. When cancelled, an answer stays pending."""
        try:
            with pause_timeouts():
                await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            if not message.is_answer:
                self._journal.settle(SendResult(message.pk, NOT_SENT))
            raise

    async def _wait(self, message: Outgoing, end: float, *, was_there: bool) -> bool:
        """Wait for the account, and for the floor. When cancelled, an answer stays pending; what a
        tool wanted to say comes too late."""
        try:
            if was_there:
                await asyncio.sleep(MOVE_SECONDS)
            if not message.is_part:
                await self._floors.wait_free(self._chat)
            seconds = end - asyncio.get_running_loop().time()
            return await self._outbox.wait_connected(self._chat, seconds)
        except asyncio.CancelledError:
            if not message.is_answer:
                self._journal.settle(SendResult(message.pk, NOT_CONNECTED))
            raise

    async def pass_on(
        self, message: Outgoing, *, turn: float, is_written: bool = False
    ) -> SendResult:
        """Hand a recorded message to the outbox. ``is_written``: the record says ``sent`` already;
        otherwise it waits ``turn`` seconds first.

        A message that was certainly not written, because the account disconnected at that moment,
        or an answer in several messages began, waits for it.
        """
        if turn:
            await self.await_turn(message, turn)
        patience = ANSWER_PATIENCE if message.is_answer else TOOL_PATIENCE
        end = asyncio.get_running_loop().time() + patience
        pk, delivery = message.pk, Delivery(State.PENDING)
        if is_written:
            delivery = await self._deliver(message)
        while delivery.state == State.PENDING:
            if is_written:
                self._journal.settle(SendResult(pk, delivery, is_speech=False))
            if not await self._wait(message, end, was_there=is_written):
                return SendResult(pk, NOT_CONNECTED)
            if is_written:
                message = replace(message, echo=new_echo())
            is_written = True
            marked = self._journal.mark_sent(pk, message.echo)
            await self.on_record(marked, is_answer=message.is_answer)
            delivery = await self._deliver(message)
        if delivery.fallback is not None:
            delivery = await self._try_again(message, delivery)
        return SendResult(pk, delivery)

    async def _deliver(self, message: Outgoing) -> Delivery:
        if self._journal.record.is_lease_over:
            return ASLEEP
        if not message.is_part and self._floors.is_held(self._chat):
            return NO_FLOOR
        try:
            delivery = await self._outbox.deliver(
                self._chat, message.segments, echo=message.echo, temp_group_id=self._temp_group_id
            )
        except asyncio.CancelledError:
            self._journal.settle(SendResult(message.pk, CUT_OFF))
            raise
        metrics.SENDS.labels(delivery.state.value).inc()
        return delivery

    async def _try_again(self, message: Outgoing, refused: Delivery) -> Delivery:
        """Resend, once, a message that was certainly not sent, in another form and under its own
        echo.

        The record keeps the form it had. When cancelled before it is written again, it stays
        refused.
        """
        if refused.fallback is None:
            return refused
        echo = new_echo()
        try:
            segments = await refused.fallback()
            if not message.is_part:
                await self._floors.wait_free(self._chat)
            await self._journal.mark_sent(message.pk, echo)
        except MediaError as error:
            return Delivery(State.FAILED, error=f"{refused.error}; {error}")
        except asyncio.CancelledError:
            self._journal.settle(SendResult(message.pk, refused))
            raise
        second = await self._deliver(replace(message, segments=segments, echo=echo))
        if second.state == State.PENDING:
            return Delivery(State.FAILED, error=f"{refused.error}; {second.error}")
        said = f"{refused.error}; {refused.fallback_form}: {second.error or second.state.value}"
        return replace(second, error=said, fallback=None)
