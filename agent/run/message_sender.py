"""Saying something in the chat of one run, and nowhere else."""

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any, TypeVar

from django.utils.translation import gettext_noop

from agent.domain.errors import MediaError
from agent.domain.manners import MOST_PART_CHARS
from agent.domain.states import AWAY, MessageState
from agent.domain.types import AnswerMessage, ChatAddress, Delivery, MessagePart, Outbox
from agent.record.chats.sessions import OpenedChat
from agent.record.run_journal import RunJournal
from agent.record.runs.recorded_answers import RecordedAnswerMessage
from agent.record.runs.replies import FORWARD, AnswerPlan, OutgoingMessage, SendResult
from agent.record.runs.steps import NewStep
from tools import metrics
from tools.registry.execution import pause_timeouts
from tools.time_limits import TIME_LIMITS

MESSAGES = 50
"""Messages of one run. The last of them is kept for the final answer."""
CHARACTERS = 200_000
"""Characters of all of them."""
CUT = "…"
NO_MESSAGES = (
    f"本轮最多用工具发送 {MESSAGES - 1} 条消息，已经用完，这条没有发送。请直接给出最终回答。"
)
TOO_MANY_PARTS = (
    "这些内容要分成 {count} 条消息，本轮只能再用工具发送 {left} 条，没有发送。请缩短内容。"
)
NO_CHARACTERS = f"本轮最多发送 {CHARACTERS} 个字，还剩 {{left}} 个，这条没有发送。请缩短内容。"


@dataclass(slots=True)
class SendAllowance:
    """What a run has said by tools: each message that it put on record counts, also one that the
    client refused."""

    messages: int = 0
    characters: int = 0

    @property
    def left(self) -> int:
        """Characters that may still be sent."""
        return max(CHARACTERS - self.characters, 0)

    def take(self, text: str, count: int = 1) -> str:
        """Count ``text``, which a tool says in ``count`` messages; why it may not be sent where
        that is too much, and it is not counted then."""
        if self.messages >= MESSAGES - 1:
            return NO_MESSAGES
        if count > (left := MESSAGES - 1 - self.messages):
            return TOO_MANY_PARTS.format(count=count, left=left)
        if len(text) > self.left:
            return NO_CHARACTERS.format(left=self.left)
        self.messages += count
        self.characters += len(text)
        return ""

    def cut_to_fit(self, text: str) -> str:
        """A final answer, cut with a mark where it is longer than what is left."""
        return text if len(text) <= self.left else text[: max(self.left - len(CUT), 0)] + CUT


NOT_CONNECTED = Delivery(MessageState.FAILED, error=AWAY)
ASLEEP = Delivery(
    MessageState.PENDING, error=gettext_noop("this process was asleep when it was to be written")
)
NOT_SENT = Delivery(MessageState.FAILED, error=gettext_noop("the run ended before it was sent"))
PART_REFUSED = Delivery(
    MessageState.FAILED, error=gettext_noop("an earlier part of the answer could not be sent")
)
NO_FLOOR = Delivery(
    MessageState.PENDING, error=gettext_noop("an answer in several messages was being sent")
)
CUT_OFF = Delivery(
    MessageState.UNKNOWN, error=gettext_noop("the run ended before the client answered")
)


_numbers = count(1)


@cache
def _prefix(_process: int) -> str:
    return uuid.uuid4().hex[:12]


def new_echo() -> str:
    """An echo that no other process has used or will use, not even one that was forked from this
    one: clients answer old calls on new sockets."""
    return f"{_prefix(os.getpid())}-{next(_numbers)}"


class ChatFloors:
    """The chats in which an answer of several messages is being sent by this process. Used from
    one event loop."""

    def __init__(self) -> None:
        self._held: dict[ChatAddress, asyncio.Event] = {}

    def is_held(self, chat: ChatAddress) -> bool:
        return chat in self._held

    async def wait_free(self, chat: ChatAddress) -> None:
        """Return at a moment when nobody has the floor in ``chat``."""
        while (end := self._held.get(chat)) is not None:
            await end.wait()

    @asynccontextmanager
    async def hold(self, chat: ChatAddress) -> AsyncIterator[None]:
        """Have the floor in ``chat``, after whoever has it."""
        await self.wait_free(chat)
        end = self._held[chat] = asyncio.Event()
        try:
            yield
        finally:
            del self._held[chat]
            end.set()


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
        metrics.labelled(metrics.SENDS, delivery.state.value).inc()
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
        self._has_turn = False
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
        segments = self._outbox.compose(parts)
        return await self.say(segments, text, tool_call_pk, is_counted=is_counted)

    async def send_nodes(
        self, messages: Sequence[AnswerMessage], text: str, *, tool_call_pk: int
    ) -> Delivery:
        """The same for one merged forward of ``messages``."""
        nodes = self._outbox.compose_forward(self.chat, [one.parts for one in messages])
        return await self.say(nodes, text, tool_call_pk)

    async def say(
        self, segments: Segments, text: str, tool_call_pk: int, *, is_counted: bool = True
    ) -> Delivery:
        """The same for what is composed already."""
        if is_counted and (refusal := self.allowance.take(text)):
            return Delivery(State.FAILED, error=refusal)
        outcome = await self._send(segments, text, tool_call_pk=tool_call_pk)
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

    async def resend(self, messages: Sequence[RecordedAnswerMessage]) -> SendResult:
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

    async def wait_turn(self) -> None:
        """Wait now for the turn of what is sent next, whose words depend on the time."""
        await asyncio.sleep(self._next_turn())
        self._has_turn = True

    def _next_turn(self) -> float:
        if self._has_turn:
            self._has_turn = False
            return 0.0
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
        for index, part in enumerate(parts):
            if index:
                turn, is_written = self._next_turn(), False
            sent = await self._pass_on(part, is_written=is_written, turn=turn)
            left = parts[index + 1 :]
            if sent.delivery.state == State.FAILED:
                self.give_up([unsent.pk for unsent in left])
                break
            if left:
                self.journal.settle(sent)
        return sent
