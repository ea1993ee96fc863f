"""How an answer is said: in one message, in several, or as a merged forward."""

import asyncio
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from django.utils.translation import gettext_noop

from agent.chat.message_run import MessageRun
from agent.domain.answer_parts import split_answer, split_mentions
from agent.domain.errors import pick_sentence
from agent.domain.failures import is_refused
from agent.domain.manners import ChatManners, MarkdownStyle
from agent.domain.persona import PersonaSettings
from agent.domain.states import MessageState
from agent.domain.types import AnswerMessage, IncomingMessage, MessagePart
from agent.markdown.answer_pieces import AnswerPiece, prepare_answer
from agent.record.chats.members import find_members
from agent.record.record import Record
from agent.record.runs.recorded_answers import RecordedAnswer
from agent.record.runs.replies import SendResult
from agent.record.runs.steps import NewStep
from agent.record.waiting.approvals import ApprovalOutcome
from agent.run.message_sender import CUT, MESSAGES, NOT_CONNECTED

#: The account number that stands for every anonymous member of a group; mentioning it has no
#: effect.
ANONYMOUS = "80000000"
#: What stands for a picture in the words of a message.
PICTURE = "[图片]"
#: Pictures in one message of an answer.
MOST_PICTURES = 9
#: What a person is told who decides over a waiting call, in Chinese and in English.
DECIDED = {
    ApprovalOutcome.APPROVED: (
        "已批准 {code}，正在执行。",
        "{code} is approved and being carried out.",
    ),
    ApprovalOutcome.REFUSED: ("已拒绝 {code}。", "{code} is refused."),
    ApprovalOutcome.NOT_AN_OWNER: (
        "只有机器人主人可以处理 {code}。",
        "Only the bot's owners can decide over {code}.",
    ),
    ApprovalOutcome.NOT_A_MANAGER: (
        "只有机器人主人，或那个群的群主、管理员在群里可以处理 {code}。",
        "Only the bot's owners, or who leads that group, in the group, can decide over {code}.",
    ),
    ApprovalOutcome.NOT_SHOWN: (
        "{code} 的参数没有全部显示在会话中，不能在这里批准。"
        "请在管理后台查看全部参数后处理，或在这里回复「拒绝 {code}」。",
        "Not all arguments of {code} were shown in the chat, so it cannot be approved here. "
        "See all of them in the admin and decide there, or reply “refuse {code}” here.",
    ),
    ApprovalOutcome.INVALID: (
        "{code} 的参数有误，仍在等待：\n{problem}",
        "The arguments of {code} are not right; it still waits:\n{problem}",
    ),
    ApprovalOutcome.UNKNOWN: (
        "没有等待批准的调用 {code}，它可能已经处理过，或者已经过期。",
        "No call {code} waits. It may have been decided before, or have expired.",
    ),
}


def build_final_parts(
    message: IncomingMessage, text: str, persona: PersonaSettings, manners: ChatManners
) -> list[MessagePart]:
    """``text`` as the answer to ``message``: in groups with a quote and a mention, as ``manners``
    or else ``persona`` say."""
    return address_answer([MessagePart("plain", text=text)], message, persona, manners)


def address_answer(
    parts: list[MessagePart],
    message: IncomingMessage,
    persona: PersonaSettings,
    manners: ChatManners,
) -> list[MessagePart]:
    """``parts`` with what says to whom they are the answer."""
    if message.chat.kind != "group":
        return parts
    before = []
    if message.message_id and (persona.quote if manners.quote is None else manners.quote):
        before.append(MessagePart("quote", message_id=message.message_id))
    mention = persona.mention if manners.mention is None else manners.mention
    if mention and message.sender_id != ANONYMOUS:
        before.append(MessagePart("mention_user", mention_user_id=message.sender_id))
        if parts[0].type == "plain":
            parts = [replace(parts[0], text=f" {parts[0].text}"), *parts[1:]]
    return [*before, *parts]


def split_pieces(pieces: Sequence[AnswerPiece], limit: int) -> list[AnswerMessage]:
    """``pieces`` as messages of at most ``limit`` characters and :data:`MOST_PICTURES` each, in
    order."""
    messages: list[AnswerMessage] = []
    for piece in chain.from_iterable(_short(piece, limit) for piece in pieces):
        parts, said = messages[-1] if messages else ([], "")
        pictures = sum(part.type == "image" for part in parts)
        length = sum(len(part.text) for part in parts)
        fits = pictures < MOST_PICTURES if piece.picture_path else length + len(piece.text) <= limit
        if not messages or not fits:
            messages.append(AnswerMessage([_part(piece)], piece.text))
        else:
            words = f"{said}\n{piece.text}" if said else piece.text
            messages[-1] = AnswerMessage([*parts, _part(piece)], words)
    return messages


def cut_messages(messages: list[AnswerMessage], count: int, limit: int) -> list[AnswerMessage]:
    """The first ``count`` of ``messages``, with a mark where others were left out."""
    if len(messages) <= count:
        return messages
    parts, words = messages[count - 1]
    if parts[-1].type == "plain":
        shortened = parts[-1].text[: limit - len(CUT)] + CUT
        parts = [*parts[:-1], replace(parts[-1], text=shortened)]
    else:
        parts = [*parts, MessagePart("plain", text=CUT)]
    return [*messages[: count - 1], AnswerMessage(parts, words + CUT)]


def mention_members(
    messages: list[AnswerMessage], members: Mapping[str, str]
) -> list[AnswerMessage]:
    """``messages`` in which the names of ``members`` mention them."""
    return [
        message._replace(
            parts=[
                found
                for part in message.parts
                for found in (
                    split_mentions(part.text, members) if part.type == "plain" else [part]
                )
            ]
        )
        for message in messages
    ]


def _short(piece: AnswerPiece, limit: int) -> list[AnswerPiece]:
    """``piece`` in messages of at most ``limit`` characters; none, where it says nothing."""
    if piece.picture_path or len(piece.text) <= limit:
        return [piece] if piece.picture_path or piece.text.strip() else []
    return [AnswerPiece(text) for text in split_answer(piece.text, limit)]


def _part(piece: AnswerPiece) -> MessagePart:
    if piece.picture_path:
        return MessagePart("image", path=piece.picture_path)
    return MessagePart("plain", text=piece.text)


def approval_outcome_text(
    outcome: ApprovalOutcome, code: str, problem: str, language: str = ""
) -> str:
    """The reply to the person who decided, in ``language`` or else LANGUAGE_CODE."""
    return pick_sentence(DECIDED[outcome], "", language).format(code=code, problem=problem)


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
        message = run.message
        limit, count = run.sender.part_limit, MESSAGES - run.sender.allowance.messages
        messages = split_pieces(pieces, limit)
        if len(messages) > count:
            messages = cut_messages(messages, count, limit)
            text = _cut(run, "\n".join(one.text for one in messages))
        if message.chat.kind == "group" and "@" in text:
            members = await self.record.submit(find_members, run.pending.session_pk)
            # Beside the event loop: before every sign of a long answer a name may stand.
            messages = await asyncio.to_thread(mention_members, messages, members)
        first = address(run, messages[0].parts)
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


async def say_sentence(
    run: MessageRun, text: str, picture: MessagePart | None = None
) -> SendResult:
    """Send a fixed ``text`` to whoever ``run`` answers, in several messages where it is long, the
    first with the ``picture``; it is no part of the conversation."""
    limit = run.sender.part_limit
    first, *others = split_answer(text, limit) if len(text) > limit else [text]
    said = [MessagePart("plain", text=first)] if first or picture is None else []
    parts = address(run, [*said, picture] if picture else said)
    if picture is not None:
        text, first = f"{text}{PICTURE}", f"{first}{PICTURE}"
    if others:
        rest = [AnswerMessage([MessagePart("plain", text=one)], one) for one in others]
        sent = await run.sender.send_parts([AnswerMessage(parts, first), *rest], text)
    else:
        sent = await run.sender.send_final(parts, text)
    return SendResult(sent.pk, sent.delivery, is_speech=False)


def address(run: MessageRun, parts: list[MessagePart]) -> list[MessagePart]:
    """``parts`` with what says to whom they are said: whoever is answered, or those whom a reminder
    or a rule mentions."""
    pending, people = run.pending, list[str]()
    is_usual = pending.rule is None or not (pending.is_later_result or run.is_by_rule)
    if is_usual and pending.reminder is None:
        return address_answer(parts, pending.message, run.active.persona, run.active.manners)
    if run.message.chat.kind == "group":
        people += pending.reminder.mention if pending.reminder else ()
        about = pending.rule.mentioned(run.message.chat) if pending.rule else ()
        people += [one for one in about if one != ANONYMOUS]
    if people and parts[0].type == "plain":
        parts = [replace(parts[0], text=f" {parts[0].text}"), *parts[1:]]
    return [*(MessagePart("mention_user", mention_user_id=one) for one in people), *parts]


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
