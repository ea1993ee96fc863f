"""Saying something in the chat of one run, and nowhere else."""

import sys
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from agent.domain.manners import MOST_PART_CHARS
from agent.domain.states import MessageState
from agent.domain.types import AnswerMessage, ChatAddress, Delivery, MessagePart, Outbox
from agent.record.chats.sessions import OpenedChat
from agent.record.run_journal import RunJournal
from agent.record.runs.recorded_answers import RecordedMessage
from agent.record.runs.replies import FORWARD, AnswerPlan, OutgoingMessage, SendResult
from agent.record.runs.steps import NewStep
from agent.run.allowance import SendAllowance
from agent.run.chat_floors import ChatFloors
from agent.run.courier import Courier, Outgoing, Segments
from agent.run.echoes import new_echo
from agent.run.send_outcomes import NOT_SENT, PART_REFUSED

State = MessageState


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
        part_chars: int = MOST_PART_CHARS,
        floors: ChatFloors | None = None,
    ) -> None:
        """``sends_per_minute`` and ``part_chars`` are those of the chat's manners."""
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
        self._part_chars = part_chars
        self._floors = floors or ChatFloors()
        self._courier = Courier(journal, outbox, chat, self._floors, temp_group_id)

    @property
    def takes_any_length(self) -> bool:
        """Whether an answer of any length is one message here."""
        return self._outbox.takes_any_length

    @property
    def part_limit(self) -> int:
        """Characters of one message here."""
        if self.takes_any_length:
            return sys.maxsize
        room = min(self._part_chars, MOST_PART_CHARS)
        return room - 1 if self.chat.kind == "group" else room  # a space stands behind an at

    def elsewhere(self, chat: ChatAddress, opened: OpenedChat) -> "MessageSender":
        """Sends to another chat for the same run, which may say no more because of it. What is said
        there is not said in the chat of the run."""
        other = MessageSender(
            self.journal,
            self._outbox,
            chat,
            session_pk=opened.session_pk,
            sends_per_minute=opened.sends_per_minute,
            part_chars=opened.part_chars,
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

    async def send_each(
        self, messages: Sequence[AnswerMessage], *, tool_call_pk: int
    ) -> AsyncGenerator[Delivery, None]:
        """Send ``messages`` for a tool, one after the other as the parts of an answer; the outcome
        of each that was tried, the last of them of the first that could not be sent.

        Several are on record before the first is written. What is left when it is cancelled is not
        sent.
        """
        if len(messages) == 1:
            yield await self.send(*messages[0], tool_call_pk=tool_call_pk)
            return
        if refusal := self.allowance.take("".join(one.text for one in messages), len(messages)):
            yield Delivery(State.FAILED, error=refusal)
            return
        async with self._floors.hold(self.chat):
            turn = self._next_turn()
            is_now = not turn and self._outbox.is_connected(self.chat)
            left = await self._plan(messages, is_now=is_now, tool_call_pk=tool_call_pk)
            try:
                for message in messages:
                    sent = await self._pass_on(left.pop(0), is_written=is_now, turn=turn)
                    self.journal.settle(sent)
                    if sent.delivery.state == State.FAILED:
                        self.give_up([one.pk for one in left])
                        left = []
                        yield sent.delivery
                        return
                    self.said.append(message.text)
                    yield sent.delivery
                    turn, is_now = self._next_turn() if left else 0.0, False
            finally:
                for one in left:
                    self.journal.settle(SendResult(one.pk, NOT_SENT))

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
            parts = await self._plan(messages, text, step, is_now=is_now, refused=refused)
            return await self._pass_on_parts(parts, is_written=is_now, turn=turn)

    async def _plan(
        self,
        messages: Sequence[AnswerMessage],
        text: str | None = None,
        step: NewStep | None = None,
        *,
        is_now: bool,
        refused: SendResult | None = None,
        tool_call_pk: int | None = None,
    ) -> list[Outgoing]:
        """Put ``messages`` on record: as the answer ``text`` of the run, or as what a tool sends.
        ``is_now``: the first is written at once."""
        is_answer = tool_call_pk is None
        planned = [
            self._planned(
                self._outbox.compose(message.parts),
                message.text,
                state=State.SENT if is_now and number == 1 else State.PENDING,
                echo=new_echo() if number == 1 else None,
                part=number if is_answer else None,
                step=step if number == 1 else None,
                tool_call_pk=tool_call_pk,
            )
            for number, message in enumerate(messages, 1)
        ]
        plan = AnswerPlan(self.journal.claim.run_pk, text, planned, refused)
        pks = await self._courier.on_record(self.journal.plan_answer(plan), is_answer=is_answer)
        return [
            Outgoing(pk, one.segments, one.echo or new_echo(), is_answer, is_part=True)
            for pk, one in zip(pks, planned, strict=True)
        ]

    async def resend(self, messages: Sequence[RecordedMessage]) -> SendResult:
        """Send what an earlier process had recorded of an answer, and certainly not sent."""
        if len(messages) == 1:
            (one,) = messages
            message = Outgoing(one.pk, one.segments, new_echo())
            return await self._pass_on(message, turn=self._next_turn())
        async with self._floors.hold(self.chat):
            return await self._pass_on_parts(
                [Outgoing(one.pk, one.segments, new_echo(), is_part=True) for one in messages],
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
        pk = await self._courier.on_record(self.journal.add_reply(planned), is_answer=is_answer)
        message = Outgoing(pk, segments, planned.echo or new_echo(), is_answer)
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

    def _next_turn(self) -> float:
        return self._outbox.next_turn(self.chat, self._sends_per_minute)

    async def _pass_on(
        self, message: Outgoing, *, turn: float, is_written: bool = False
    ) -> SendResult:
        sent = await self._courier.pass_on(message, turn=turn, is_written=is_written)
        self.has_spoken |= sent.delivery.state != State.FAILED
        return sent

    async def _pass_on_parts(
        self, parts: Sequence[Outgoing], *, turn: float, is_written: bool = False
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
