"""Saying something in the chat of one run, and nowhere else."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Any

from django.utils.translation import gettext_noop

from agent.domain.errors import MediaError
from agent.domain.states import MessageState
from agent.domain.types import ChatAddress, Delivery, MessagePart, Outbox
from agent.record.replies import OutgoingMessage, SendResult
from agent.record.run_journal import RunJournal
from agent.record.steps import NewStep
from agent.run.allowance import SendAllowance
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
CUT_OFF = Delivery(State.UNKNOWN, error=gettext_noop("the run ended before the client answered"))


def echo_source() -> Callable[[], str]:
    """Echoes that no other process has used or will use: clients answer old calls on new
    sockets."""
    prefix, numbers = uuid.uuid4().hex[:12], count(1)
    return lambda: f"{prefix}-{next(numbers)}"


new_echo = echo_source()


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

    def elsewhere(self, chat: ChatAddress, session_pk: int) -> "MessageSender":
        """Sends to another chat for the same run, which may say no more because of it. What is said
        there is not said in the chat of the run."""
        other = MessageSender(self.journal, self._outbox, chat, session_pk=session_pk)
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
        outcome = await self._send(parts, text, tool_call_pk=tool_call_pk)
        self.journal.settle(outcome)
        if is_counted and outcome.delivery.state != State.FAILED:
            self.said.append(text)
        return outcome.delivery

    async def send_final(
        self, parts: Sequence[MessagePart], text: str, step: NewStep | None = None
    ) -> SendResult:
        """Send the final answer, with the model call it came from; the caller settles the
        outcome."""
        return await self._send(parts, text, step=step)

    async def resend(self, pk: int, segments: list[dict[str, Any]]) -> SendResult:
        """Send an answer that an earlier process had recorded and certainly not sent."""
        turn = self._next_turn()
        return await self._pass_on(
            pk, segments, new_echo(), is_written=False, is_answer=True, turn=turn
        )

    async def _send(
        self,
        parts: Sequence[MessagePart],
        text: str,
        *,
        tool_call_pk: int | None = None,
        step: NewStep | None = None,
    ) -> SendResult:
        segments = self._outbox.compose(parts)
        echo = new_echo()
        turn = self._next_turn()
        is_now = not turn and self._outbox.is_connected(self.chat)
        added = self.journal.add_reply(
            OutgoingMessage(
                session_pk=self.session_pk,
                run_pk=self.journal.claim.run_pk,
                text=text,
                segments=segments,
                echo=echo,
                state=State.SENT if is_now else State.PENDING,
                tool_call_pk=tool_call_pk,
                temp_group_id=self._temp_group_id,
                step=step,
            )
        )
        pk = await self._on_record(added, is_answer=tool_call_pk is None)
        return await self._pass_on(
            pk, segments, echo, is_written=is_now, is_answer=tool_call_pk is None, turn=turn
        )

    async def _on_record(self, written: "asyncio.Future[int]", *, is_answer: bool) -> int:
        """The message that is on record as sent from now on. When cancelled, the record is set
        right before the run is given back."""
        try:
            return await asyncio.shield(written)
        except asyncio.CancelledError:
            written.add_done_callback(lambda future: self._take_back(future, is_answer=is_answer))
            await asyncio.wait([written])
            raise

    def _take_back(self, written: "asyncio.Future[int]", *, is_answer: bool) -> None:
        """What is on record as sent, and was cancelled before it was written: an answer is still to
        be given."""
        if not written.cancelled() and written.exception() is None:
            delivery = Delivery(State.PENDING) if is_answer else NOT_SENT
            self.journal.settle(SendResult(written.result(), delivery, is_speech=False))

    def _next_turn(self) -> float:
        return self._outbox.next_turn(self.chat, self._sends_per_minute)

    async def _await_turn(self, pk: int, seconds: float, *, is_answer: bool) -> None:
        """Wait for the turn of a pending message; no time limit of the run or the tool runs
        meanwhile. When cancelled, an answer stays pending."""
        try:
            with pause_timeouts():
                await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            if not is_answer:
                self.journal.settle(SendResult(pk, NOT_SENT))
            raise

    async def _wait(self, pk: int, seconds: float, *, was_there: bool, is_answer: bool) -> bool:
        """Wait for the account. When cancelled, an answer stays pending; what a tool wanted to say
        comes too late."""
        try:
            if was_there:
                await asyncio.sleep(MOVE_SECONDS)
            return await self._outbox.wait_connected(self.chat, seconds)
        except asyncio.CancelledError:
            if not is_answer:
                self.journal.settle(SendResult(pk, NOT_CONNECTED))
            raise

    async def _pass_on(
        self,
        pk: int,
        segments: list[dict[str, Any]],
        echo: str,
        *,
        is_written: bool,
        is_answer: bool,
        turn: float,
    ) -> SendResult:
        """Hand a recorded message to the outbox. ``is_written``: the record says ``sent`` already;
        otherwise it waits ``turn`` seconds first.

        A message that was certainly not written, because the account disconnected at that moment,
        waits for it.
        """
        if turn:
            await self._await_turn(pk, turn, is_answer=is_answer)
        loop = asyncio.get_running_loop()
        end = loop.time() + (ANSWER_PATIENCE if is_answer else TOOL_PATIENCE)
        delivery = (
            await self._deliver(pk, segments, echo) if is_written else Delivery(State.PENDING)
        )
        while delivery.state == State.PENDING:
            if is_written:
                self.journal.settle(SendResult(pk, delivery, is_speech=False))
            if not await self._wait(
                pk, end - loop.time(), was_there=is_written, is_answer=is_answer
            ):
                return SendResult(pk, NOT_CONNECTED)
            echo, is_written = new_echo() if is_written else echo, True
            await self._on_record(self.journal.mark_sent(pk, echo), is_answer=is_answer)
            delivery = await self._deliver(pk, segments, echo)
        if delivery.fallback is not None:
            delivery = await self._try_again(pk, delivery, delivery.fallback)
        self.has_spoken |= delivery.state != State.FAILED
        return SendResult(pk, delivery)

    async def _deliver(self, pk: int, segments: list[dict[str, Any]], echo: str) -> Delivery:
        if self.journal.record.is_lease_over:
            return ASLEEP
        try:
            return await self._outbox.deliver(
                self.chat, segments, echo=echo, temp_group_id=self._temp_group_id
            )
        except asyncio.CancelledError:
            self.journal.settle(SendResult(pk, CUT_OFF))
            raise

    async def _try_again(
        self, pk: int, refused: Delivery, remake: Callable[[], Awaitable[list[dict[str, Any]]]]
    ) -> Delivery:
        """Resend, once, a message that was certainly not sent, in another form and under its own
        echo.

        The record keeps the form it had. When cancelled before it is written again, it stays
        refused.
        """
        echo = new_echo()
        try:
            segments = await remake()
            await self.journal.mark_sent(pk, echo)
        except MediaError as error:
            return Delivery(State.FAILED, error=f"{refused.error}; {error}")
        except asyncio.CancelledError:
            self.journal.settle(SendResult(pk, refused))
            raise
        second = await self._deliver(pk, segments, echo)
        if second.state == State.PENDING:
            return Delivery(State.FAILED, error=f"{refused.error}; {second.error}")
        said = f"{refused.error}; {refused.fallback_form}: {second.error or second.state.value}"
        return Delivery(second.state, second.message_id, said)
