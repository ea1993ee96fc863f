"""Saying something in the chat of one run, and nowhere else."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar

from django.utils.translation import gettext_noop

from agent.domain.errors import MediaError
from agent.domain.states import MessageState
from agent.domain.types import AnswerMessage, ChatAddress, Delivery, MessagePart, Outbox
from agent.record.recorded_answers import RecordedMessage
from agent.record.replies import FORWARD, AnswerPlan, OutgoingMessage, SendResult
from agent.record.run_journal import RunJournal
from agent.record.sessions import OpenedChat
from agent.record.steps import NewStep
from agent.run.allowance import SendAllowance
from agent.run.chat_floors import ChatFloors
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

NOT_CONNECTED = Delivery(State.FAILED, error=gettext_noop("the account is not connected"))
ASLEEP = Delivery(
    State.PENDING, error=gettext_noop("this process was asleep when it was to be written")
)
NOT_SENT = Delivery(State.FAILED, error=gettext_noop("the run ended before it was sent"))
PART_REFUSED = Delivery(
    State.FAILED, error=gettext_noop("an earlier part of the answer could not be sent")
)
NO_FLOOR = Delivery(
    State.PENDING, error=gettext_noop("an answer in several messages was being sent")
)
CUT_OFF = Delivery(State.UNKNOWN, error=gettext_noop("the run ended before the client answered"))


def echo_source() -> Callable[[], str]:
    """Echoes that no other process has used or will use: clients answer old calls on new
    sockets."""
    prefix, numbers = uuid.uuid4().hex[:12], count(1)
    return lambda: f"{prefix}-{next(numbers)}"


new_echo = echo_source()

R = TypeVar("R")
Segments = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """A message on record, about to be handed to the outbox."""

    pk: int
    segments: Segments
    echo: str
    is_answer: bool = True
    is_part: bool = False
    """Whether it is one of several that have the floor of their chat."""


class MessageSender:
    """Sends the messages of one run. Each is on record before it is written to a socket.

    Whatever sends raises :class:`agent.domain.errors.ClaimLost`, and sends nothing, once the run
    is in other hands.
    """

    def __init__(
        self,
        journal: RunJournal,
        outbox: Outbox,
        chat: ChatAddress,
        *,
        session_pk: int,
        temp_group_id: str = "",
        sends_per_minute: int | None = None,
        floors: ChatFloors | None = None,
    ) -> None:
        """``sends_per_minute`` is that of the chat's manners."""
        self.chat = chat
        self.session_pk = session_pk
        self.has_spoken = False
        """Whether any message was, or may have been, delivered."""
        self.has_replied = False
        """Whether the ``reply`` tool sent something: then the final text is not sent."""
        self.allowance = SendAllowance()
        self.said: list[str] = []
        """What tools of the run have sent, but for questions to the owners."""
        self.journal = journal
        self._outbox = outbox
        self._temp_group_id = temp_group_id
        self._sends_per_minute = sends_per_minute
        self._floors = floors or ChatFloors()

    @property
    def takes_any_length(self) -> bool:
        """Whether an answer of any length is one message here."""
        return self._outbox.takes_any_length

    def elsewhere(self, chat: ChatAddress, opened: OpenedChat) -> "MessageSender":
        """Sends to another chat for the same run, which may say no more because of it. What is said
        there is not said in the chat of the run."""
        other = MessageSender(
            self.journal,
            self._outbox,
            chat,
            session_pk=opened.session_pk,
            sends_per_minute=opened.sends_per_minute,
            floors=self._floors,
        )
        other.allowance = self.allowance
        return other

    async def send(
        self, parts: Sequence[MessagePart], text: str, *, tool_call_pk: int, is_counted: bool = True
    ) -> Delivery:
        """Send ``parts`` at once, for a tool. When cancelled, the outcome on record is ``unknown``.

        What is more than the run may say is not sent and not on record.
        """
        if is_counted and (refusal := self.allowance.take(text)):
            return Delivery(State.FAILED, error=refusal)
        outcome = await self._send(self._outbox.compose(parts), text, tool_call_pk=tool_call_pk)
        self.journal.settle(outcome)
        if is_counted and outcome.delivery.state != State.FAILED:
            self.said.append(text)
        return outcome.delivery

    async def send_final(
        self, parts: Sequence[MessagePart], text: str, step: NewStep | None = None
    ) -> SendResult:
        """Send the final answer, with the model call it came from; the caller settles the
        outcome."""
        return await self._send(self._outbox.compose(parts), text, step=step)

    async def send_forward(
        self, messages: Sequence[AnswerMessage], text: str, step: NewStep | None = None
    ) -> SendResult:
        """The same as one merged forward of ``messages``."""
        nodes = self._outbox.compose_forward(self.chat, [one.parts for one in messages])
        return await self._send(nodes, text, step=step, part=FORWARD)

    async def send_parts(
        self,
        messages: Sequence[AnswerMessage],
        text: str,
        step: NewStep | None = None,
        *,
        refused: SendResult | None = None,
    ) -> SendResult:
        """Send ``messages`` as the final answer, one after the other, each after the client has
        answered to the one before; nothing else of this process goes between them.

        All are on record before the first is written, together with the outcome of the merged
        forward that was ``refused``. The result is that of the last one, or of the first that could
        not be sent; the caller settles it.
        """
        async with self._floors.hold(self.chat):
            turn = self._next_turn()
            is_now = not turn and self._outbox.is_connected(self.chat)
            planned = [
                self._planned(
                    self._outbox.compose(message.parts),
                    message.text,
                    state=State.SENT if is_now and number == 1 else State.PENDING,
                    echo=new_echo() if number == 1 else None,
                    part=number,
                    step=step if number == 1 else None,
                )
                for number, message in enumerate(messages, 1)
            ]
            plan = AnswerPlan(self.journal.claim.run_pk, text, planned, refused)
            pks = await self._on_record(self.journal.plan_answer(plan), is_answer=True)
            return await self._pass_on_parts(
                [
                    _Outgoing(pk, one.segments, one.echo or new_echo(), is_part=True)
                    for pk, one in zip(pks, planned, strict=True)
                ],
                is_written=is_now,
                turn=turn,
            )

    async def resend(self, messages: Sequence[RecordedMessage]) -> SendResult:
        """Send what an earlier process had recorded of an answer, and certainly not sent."""
        if len(messages) == 1:
            (one,) = messages
            message = _Outgoing(one.pk, one.segments, new_echo())
            return await self._pass_on(message, turn=self._next_turn())
        async with self._floors.hold(self.chat):
            return await self._pass_on_parts(
                [_Outgoing(one.pk, one.segments, new_echo(), is_part=True) for one in messages],
                turn=self._next_turn(),
            )

    def give_up(self, pks: Sequence[int]) -> None:
        """Put on record that the rest of an answer is not sent, for what came before it could not
        be."""
        for pk in pks:
            self.journal.settle(SendResult(pk, PART_REFUSED))

    async def _send(
        self,
        segments: Segments,
        text: str,
        *,
        tool_call_pk: int | None = None,
        step: NewStep | None = None,
        part: int | None = None,
    ) -> SendResult:
        turn = self._next_turn()
        is_now = (
            not turn
            and self._outbox.is_connected(self.chat)
            and not self._floors.is_held(self.chat)
        )
        planned = self._planned(
            segments,
            text,
            state=State.SENT if is_now else State.PENDING,
            echo=new_echo(),
            tool_call_pk=tool_call_pk,
            step=step,
            part=part,
        )
        is_answer = tool_call_pk is None
        pk = await self._on_record(self.journal.add_reply(planned), is_answer=is_answer)
        message = _Outgoing(pk, segments, planned.echo or new_echo(), is_answer)
        return await self._pass_on(message, is_written=is_now, turn=turn)

    def _planned(self, segments: Segments, text: str, **fields: Any) -> OutgoingMessage:
        return OutgoingMessage(
            session_pk=self.session_pk,
            run_pk=self.journal.claim.run_pk,
            text=text,
            segments=segments,
            temp_group_id=self._temp_group_id,
            **fields,
        )

    async def _on_record(self, written: "asyncio.Future[R]", *, is_answer: bool) -> R:
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
            pk = written.result()
            delivery = Delivery(State.PENDING) if is_answer else NOT_SENT
            first = pk[0] if isinstance(pk, list) else pk
            self.journal.settle(SendResult(first, delivery, is_speech=False))

    def _next_turn(self) -> float:
        return self._outbox.next_turn(self.chat, self._sends_per_minute)

    async def _await_turn(self, message: _Outgoing, seconds: float) -> None:
        """Wait for the turn of a pending message; no time limit of the run or the tool runs
        meanwhile. When cancelled, an answer stays pending."""
        try:
            with pause_timeouts():
                await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            if not message.is_answer:
                self.journal.settle(SendResult(message.pk, NOT_SENT))
            raise

    async def _wait(self, message: _Outgoing, end: float, *, was_there: bool) -> bool:
        """Wait for the account, and for the floor. When cancelled, an answer stays pending; what a
        tool wanted to say comes too late."""
        try:
            if was_there:
                await asyncio.sleep(MOVE_SECONDS)
            if not message.is_part:
                await self._floors.wait_free(self.chat)
            seconds = end - asyncio.get_running_loop().time()
            return await self._outbox.wait_connected(self.chat, seconds)
        except asyncio.CancelledError:
            if not message.is_answer:
                self.journal.settle(SendResult(message.pk, NOT_CONNECTED))
            raise

    async def _pass_on_parts(
        self, parts: Sequence[_Outgoing], *, turn: float, is_written: bool = False
    ) -> SendResult:
        """Hand the messages of one answer on, each after the one before; after one that could not
        be sent no other is. The result is that of the last one that was tried."""
        for place, part in enumerate(parts):
            if place:
                turn, is_written = self._next_turn(), False
            sent = await self._pass_on(part, is_written=is_written, turn=turn)
            left = parts[place + 1 :]
            if sent.delivery.state == State.FAILED:
                self.give_up([unsent.pk for unsent in left])
                break
            if left:
                self.journal.settle(sent)
        return sent

    async def _pass_on(
        self, message: _Outgoing, *, turn: float, is_written: bool = False
    ) -> SendResult:
        """Hand a recorded message to the outbox. ``is_written``: the record says ``sent`` already;
        otherwise it waits ``turn`` seconds first.

        A message that was certainly not written, because the account disconnected at that moment,
        or an answer in several messages began, waits for it.
        """
        if turn:
            await self._await_turn(message, turn)
        patience = ANSWER_PATIENCE if message.is_answer else TOOL_PATIENCE
        end = asyncio.get_running_loop().time() + patience
        pk, delivery = message.pk, Delivery(State.PENDING)
        if is_written:
            delivery = await self._deliver(message)
        while delivery.state == State.PENDING:
            if is_written:
                self.journal.settle(SendResult(pk, delivery, is_speech=False))
            if not await self._wait(message, end, was_there=is_written):
                return SendResult(pk, NOT_CONNECTED)
            if is_written:
                message = replace(message, echo=new_echo())
            is_written = True
            marked = self.journal.mark_sent(pk, message.echo)
            await self._on_record(marked, is_answer=message.is_answer)
            delivery = await self._deliver(message)
        if delivery.fallback is not None:
            delivery = await self._try_again(message, delivery)
        self.has_spoken |= delivery.state != State.FAILED
        return SendResult(pk, delivery)

    async def _deliver(self, message: _Outgoing) -> Delivery:
        if self.journal.record.is_lease_over:
            return ASLEEP
        if not message.is_part and self._floors.is_held(self.chat):
            return NO_FLOOR
        try:
            delivery = await self._outbox.deliver(
                self.chat, message.segments, echo=message.echo, temp_group_id=self._temp_group_id
            )
        except asyncio.CancelledError:
            self.journal.settle(SendResult(message.pk, CUT_OFF))
            raise
        metrics.SENDS.labels(delivery.state.value).inc()
        return delivery

    async def _try_again(self, message: _Outgoing, refused: Delivery) -> Delivery:
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
                await self._floors.wait_free(self.chat)
            await self.journal.mark_sent(message.pk, echo)
        except MediaError as error:
            return Delivery(State.FAILED, error=f"{refused.error}; {error}")
        except asyncio.CancelledError:
            self.journal.settle(SendResult(message.pk, refused))
            raise
        second = await self._deliver(replace(message, segments=segments, echo=echo))
        if second.state == State.PENDING:
            return Delivery(State.FAILED, error=f"{refused.error}; {second.error}")
        said = f"{refused.error}; {refused.fallback_form}: {second.error or second.state.value}"
        return replace(second, error=said, fallback=None)
