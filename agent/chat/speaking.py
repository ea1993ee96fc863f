"""How an answer is said: in one message, in several, or as a merged forward."""

import asyncio
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.translation import gettext_noop

from agent.chat.final_answer import (
    address_answer,
    build_final_parts,
    cut_messages,
    mention_members,
    split_pieces,
)
from agent.chat.message_run import MessageRun
from agent.domain.failures import is_refused
from agent.domain.manners import MarkdownStyle
from agent.domain.states import MessageState
from agent.markdown.answer_pieces import AnswerPiece, prepare_answer
from agent.record.chats.members import find_members
from agent.record.record import Record
from agent.record.runs.recorded_answers import RecordedAnswer
from agent.record.runs.replies import SendResult
from agent.record.runs.steps import NewStep
from agent.run.allowance import MESSAGES
from agent.run.send_outcomes import NOT_CONNECTED

State = MessageState

ANSWER_CUT = gettext_noop("The answer was cut: it was longer than what one run may still say.")
BLANK = gettext_noop("The answer was not sent: there is nothing to be seen in it.")
#: Messages in one merged forward at most.
MOST_NODES = 100


class SpokenAnswer(NamedTuple):
    """An answer as it was said, and the outcome; None where nothing was sent."""

    text: str
    sent: SendResult | None


@dataclass(frozen=True, slots=True)
class Speaker:
    """Says the answers of runs; holds nothing that belongs to one of them."""

    record: Record

    async def say(self, run: MessageRun, text: str, step: NewStep | None) -> SpokenAnswer:
        """Send ``text`` as the answer of ``run``; ``step`` is the model call it came from, which is
        put on record with it."""
        manners, sender = run.active.manners, run.sender
        if (fitted := sender.allowance.cut_to_fit(text)) != text:
            text = _cut(run, fitted)
        is_forward = 0 < manners.forward_above < len(text) and not sender.takes_any_length
        pieces = await _prepare(run, text, is_forward=is_forward)
        if all(is_blank(piece.text) and not piece.picture_path for piece in pieces):
            run.notes.append(BLANK)
            return SpokenAnswer(text, None)
        if is_forward:
            return await self._forward(run, text, pieces, step)
        return await self._say_messages(run, text, pieces, step)

    async def say_beside(self, run: MessageRun, text: str, call_pk: int) -> None:
        """Send what the model wrote beside its calls, the first of which is ``call_pk``."""
        pieces = await prepare_answer(text, run.active.manners.markdown)
        for parts, words in split_pieces(pieces, run.sender.part_limit):
            delivery = await run.sender.send(parts, words, tool_call_pk=call_pk)
            if delivery.state == State.FAILED:
                break
            run.asides += 1

    async def resume(self, run: MessageRun, answer: RecordedAnswer) -> SendResult | None:
        """Send what is left of an answer that an earlier process had put on record; the outcome,
        None where nothing was left."""
        left = [one for one in answer.messages if one.state == State.PENDING]
        if not left:
            return None
        if any(one.state == State.FAILED for one in answer.messages):
            run.sender.give_up([one.pk for one in left])
            return None
        sent = await run.sender.resend(left)
        if left[0].is_forward and _is_refused(sent):
            pieces = await _prepare(run, answer.text, is_forward=True)
            return (await self._say_messages(run, answer.text, pieces, None, refused=sent)).sent
        return sent

    async def _forward(
        self, run: MessageRun, text: str, pieces: Sequence[AnswerPiece], step: NewStep | None
    ) -> SpokenAnswer:
        limit = run.sender.part_limit
        nodes = split_pieces(pieces, limit)
        if len(nodes) > MOST_NODES:
            nodes = cut_messages(nodes, MOST_NODES, limit)
            text = _cut(run, "\n".join(node.text for node in nodes))
        sent = await run.sender.send_forward(nodes, text, step)
        if _is_refused(sent):
            return await self._say_messages(run, text, pieces, None, refused=sent)
        return SpokenAnswer(text, sent)

    async def _say_messages(
        self,
        run: MessageRun,
        text: str,
        pieces: Sequence[AnswerPiece],
        step: NewStep | None,
        *,
        refused: SendResult | None = None,
    ) -> SpokenAnswer:
        """Send ``pieces`` as messages of the chat, as many as there need to be."""
        limit, count = run.sender.part_limit, MESSAGES - run.sender.allowance.messages
        messages = split_pieces(pieces, limit)
        if len(messages) > count:
            messages = cut_messages(messages, count, limit)
            text = _cut(run, "\n".join(message.text for message in messages))
        if run.message.chat.kind == "group" and "@" in text:
            members = await self.record.submit(find_members, run.pending.session_pk)
            # Beside the event loop: before every sign of a long answer a name may stand.
            messages = await asyncio.to_thread(mention_members, messages, members)
        first = address_answer(
            messages[0].parts, run.message, run.active.persona, run.active.manners
        )
        if len(messages) == 1 and refused is None:
            return SpokenAnswer(text, await run.sender.send_final(first, text, step))
        messages[0] = messages[0]._replace(parts=first)
        sent = await run.sender.send_parts(messages, text, step, refused=refused)
        return SpokenAnswer(text, sent)


async def _prepare(run: MessageRun, text: str, *, is_forward: bool) -> list[AnswerPiece]:
    """``text`` as the chat's manners have it; nothing is drawn for a merged forward."""
    style = run.active.manners.markdown
    if is_forward and style is MarkdownStyle.PICTURE:
        style = MarkdownStyle.PLAIN
    pieces = await prepare_answer(text, style)
    run.notes += dict.fromkeys(piece.remark for piece in pieces if piece.remark)
    return pieces


async def say_sentence(run: MessageRun, text: str) -> SendResult:
    """Send a fixed ``text`` to whoever ``run`` answers; it is no part of the conversation."""
    parts = build_final_parts(run.message, text, run.active.persona, run.active.manners)
    sent = await run.sender.send_final(parts, text)
    return SendResult(sent.pk, sent.delivery, is_speech=False)


def is_blank(text: str) -> bool:
    """Whether nothing of ``text`` can be seen: spaces, and signs without a shape."""
    return all(
        sign.isspace() or unicodedata.category(sign) in ("Cc", "Cf", "Mn", "Me") for sign in text
    )


def _cut(run: MessageRun, text: str) -> str:
    """``text``, of which the record says that it is not the whole answer."""
    if ANSWER_CUT not in run.notes:
        run.notes.append(ANSWER_CUT)
    return text


def _is_refused(sent: SendResult) -> bool:
    """Whether a merged forward was certainly not sent, and the same words may be otherwise."""
    return is_refused(sent.delivery, NOT_CONNECTED.error)
