"""The shape of a final answer, and what decisions over waiting calls are answered. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from agent.domain.answer_mentions import split_mentions
from agent.domain.answer_parts import split_answer
from agent.domain.errors import pick_sentence
from agent.domain.manners import Manners
from agent.domain.persona import Persona
from agent.domain.types import AnswerMessage, IncomingMessage, MessagePart
from agent.markdown.answer_pieces import AnswerPiece
from agent.record.waiting.approvals import ApprovalOutcome
from agent.run.allowance import CUT

#: The account number that stands for every anonymous member of a group; mentioning it has no
#: effect.
ANONYMOUS = "80000000"
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
    message: IncomingMessage, text: str, persona: Persona, manners: Manners
) -> list[MessagePart]:
    """``text`` as the answer to ``message``: in groups with a quote and a mention, as ``manners``
    or else ``persona`` say."""
    return address_answer([MessagePart("plain", text=text)], message, persona, manners)


def address_answer(
    parts: list[MessagePart], message: IncomingMessage, persona: Persona, manners: Manners
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
