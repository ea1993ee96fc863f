"""Approvals of calls: the question to an owner in the chat, and the owner's word on it. Pure but
for the settings: where no ``language`` is given, it is LANGUAGE_CODE.

Names and values come from the model, and so from anyone who talks to it: a value is one line of
JSON in which invisible characters are escaped, and nothing in it reads like the word that
approves.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.domain.errors import pick_sentence
from tools.contract import CallBasis, InvalidArguments
from tools.schemas.arguments import parse_arguments
from tools.text.readable import escape_invisible_chars

CODE_DIGITS = 6
NO_BASIS = CallBasis()

YES = ("批准", "同意", "approve")
NO = ("拒绝", "驳回", "refuse", "reject")
VERBS = (*YES, *NO)
_END = "。．.！!~～ "
_DIGIT = "[0-9０-９]"
_PLAIN_DIGITS = str.maketrans("０１２３４５６７８９", "0123456789")
_PATTERN = re.compile(
    r"(?:\[(?:回复:|@)[^\]]*\]\s*)*"  # people that the message quotes or mentions
    rf"(?:(?P<yes>{'|'.join(YES)})|(?P<no>{'|'.join(NO)}))"
    rf"(?:\s*(?P<code>{_DIGIT}{{{CODE_DIGITS}}})(?!{_DIGIT}))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ApprovalReply:
    """Yes or no to the question ``code``, "" for the one that is quoted; ``arguments`` replace the
    call's, None leaves them."""

    is_approval: bool
    code: str
    arguments: dict[str, Any] | None = None
    problem: str = ""
    """Why the arguments cannot be read; such a word decides nothing."""


def parse_approval_reply(text: str) -> ApprovalReply | None:
    """What ``text`` decides; None for everything that is not such a word and nothing else."""
    text = text.strip()
    match = _PATTERN.match(text)
    if match is None:
        return None
    word, rest = (
        ApprovalReply(match["yes"] is not None, (match["code"] or "").translate(_PLAIN_DIGITS)),
        text[match.end() :].strip(),
    )
    if ends_there(rest):
        return word
    return (
        _with_arguments(word, rest)
        if rest.startswith(("{", "｛")) or rest.endswith(("}", "｝"))
        else None
    )


def ends_there(rest: str) -> bool:
    """Whether nothing but the end of a sentence is left."""
    return not rest.strip(_END)


def _with_arguments(word: ApprovalReply, text: str) -> ApprovalReply:
    if not word.is_approval:
        return ApprovalReply(word.is_approval, word.code, problem="拒绝时不需要参数")
    try:
        return ApprovalReply(word.is_approval, word.code, arguments=parse_arguments(text))
    except InvalidArguments as error:
        return ApprovalReply(word.is_approval, word.code, problem=str(error))


# The question to an owner in the chat before a call is made. Pure but for the settings: where no
# ``language`` is given, it is LANGUAGE_CODE.
#
# Names and values come from the model, and so from anyone who talks to it: a value is one line of
# JSON in which invisible characters are escaped, and nothing in it reads like the word that
# approves.

#: Arguments that are shown; characters of a name, and of a value: of its beginning and its end
#: where it is longer.
ARGUMENTS, NAME_CHARS, VALUE_CHARS, HEAD_CHARS, TAIL_CHARS = 12, 64, 200, 120, 60
_BROKEN_ESCAPE = re.compile(r"\\[A-Za-z0-9]{0,9}\Z")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_IMITATION = re.compile(rf"(?:{'|'.join(VERBS)})(?=[^\d\n]{{0,12}}\d)", re.IGNORECASE)

#: The question in Chinese and in English, line by line.
QUESTION = (
    "需要机器人主人批准（编号 {code}）：调用工具 {tool}",
    "This needs a word of the bot's owner (number {code}): a call of the tool {tool}",
)
#: The same where the owner and the administrators of the group may decide, too.
GROUP_QUESTION = (
    "需要机器人主人，或本群群主、管理员批准（编号 {code}）：调用工具 {tool}",
    "This needs a word of the bot's owner, or of the owner or an administrator of this group "
    "(number {code}): a call of the tool {tool}",
)
BASIS = ("依据 {who} 的消息：{words}", "It rests on what {who} said: {words}")
COUNT = ("参数（{count} 个）：", "Arguments ({count}):")
MORE_ARGUMENTS = (
    "…（还有 {count} 个参数没有显示）",
    "… (arguments that are not shown: {count})",
)
LEFT_OUT = (
    "…（共 {count} 字，中间没有显示）…",
    "… ({count} characters; the middle is not shown) …",
)
NOT_SHOWN = (
    "参数没有全部显示，不能在会话中批准：请主人在管理后台查看全部参数后处理，"
    "也可回复「拒绝 {code}」。",
    "Not all of the arguments are shown, so this cannot be approved in a chat: owners see all of "
    "them in the admin and decide there, or reply “refuse {code}”.",
)
DECIDE = (
    "主人可回复「批准 {code}」或「拒绝 {code}」，"
    "也可引用这条消息只回复「批准」或「拒绝」，或在管理后台处理。",
    "Owners can reply “approve {code}” or “refuse {code}”, quote this message with only “approve” "
    "or “refuse”, or decide in the admin.",
)
GROUP_DECIDE = (
    "主人、群主或管理员可回复「批准 {code}」或「拒绝 {code}」，"
    "也可引用这条消息只回复「批准」或「拒绝」。",
    "Owners and administrators can reply “approve {code}” or “refuse {code}”, or quote this "
    "message with only “approve” or “refuse”.",
)
FROM_GROUP = (
    "来自群聊{title}（{peer}），提出者{name}（{sender}）",
    "From the group{title} ({peer}), asked for by{name} ({sender})",
)
FROM_PRIVATE = (
    "来自私聊，提出者{name}（{sender}）",
    "From a private chat, asked for by{name} ({sender})",
)


@dataclass(frozen=True, slots=True)
class ArgumentLines:
    """Arguments as lines; ``is_cut``: some of it is not in them."""

    lines: tuple[str, ...]
    is_cut: bool


def format_argument_lines(arguments: Mapping[str, object], language: str = "") -> ArgumentLines:
    """``arguments``, each by its name on a line of its own."""
    lines, is_cut = list[str](), len(arguments) > ARGUMENTS
    for name, value in list(arguments.items())[:ARGUMENTS]:
        title, is_name_cut = _shortened(
            name if _PLAIN_NAME.fullmatch(name) else _json(name), NAME_CHARS, language
        )
        text, is_value_cut = _shortened(
            _json(value), VALUE_CHARS, language, len(value) if isinstance(value, str) else None
        )
        is_cut |= is_name_cut or is_value_cut
        lines.append(f"· {title} = {text}")
    if len(arguments) > ARGUMENTS:
        more = pick_sentence(MORE_ARGUMENTS, "", language)
        lines.append(more.format(count=len(arguments) - ARGUMENTS))
    return ArgumentLines(tuple(lines), is_cut)


def build_approval_question(
    tool_name: str,
    arguments: Mapping[str, object],
    code: str,
    origin: str = "",
    language: str = "",
    *,
    basis: CallBasis = NO_BASIS,
    by_managers: bool = False,
) -> str:
    """The question about one call. What was cut is not to be approved where it cannot be read.
    ``origin`` is told where it is asked elsewhere; ``by_managers``: who leads the group decides,
    too."""
    seen = format_argument_lines(arguments, language)
    texts = GROUP_QUESTION if by_managers else QUESTION
    question = pick_sentence(texts, "", language).format(code=code, tool=tool_name)
    decides = GROUP_DECIDE if by_managers else DECIDE
    decide = pick_sentence(NOT_SHOWN if seen.is_cut else decides, "", language)
    rests_on = pick_sentence(BASIS, "", language).format(
        who=_name(basis.said_by).strip(), words=_shortened(_json(basis.words), VALUE_CHARS, "")[0]
    )
    return "\n".join(
        [
            question,
            *([origin] if origin else []),
            pick_sentence(COUNT, "", language).format(count=len(arguments)),
            *seen.lines,
            *([rests_on] if basis.said_by else []),
            decide.format(code=code),
        ]
    )


def describe_origin(kind: str, peer: str, title: str, sender: str, sender_name: str) -> str:
    """Where a call was asked for, and by whom, in LANGUAGE_CODE. Titles and names are anyone's
    words."""
    texts = FROM_GROUP if kind == "group" else FROM_PRIVATE
    return pick_sentence(texts, "").format(
        title=_name(title), peer=peer, name=_name(sender_name), sender=sender
    )


def show_value(value: str, language: str = "") -> str:
    """Anyone's words as one line of JSON, in which nothing is unseen or reads like a decision."""
    return _shortened(_json(value), VALUE_CHARS, language, len(value))[0]


def _name(text: str) -> str:
    return f" {_shortened(_json(text), NAME_CHARS, '')[0]}" if text else ""


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…" * (VALUE_CHARS + 1)  # deeper than can be written: more than can be shown


def _shortened(text: str, limit: int, language: str, length: int | None = None) -> tuple[str, bool]:
    """``text`` made visible, on at most about ``limit`` characters, and whether anything is left
    out."""
    seen = _spelled(text[: limit + 1])
    if len(text) <= limit and len(seen) <= limit:
        return seen, False
    head, tail = (
        _BROKEN_ESCAPE.sub("", seen[:HEAD_CHARS]),
        _spelled(text[-TAIL_CHARS:])[-TAIL_CHARS:],
    )
    left_out = pick_sentence(LEFT_OUT, "", language).format(count=length or len(text))
    return f'{head}"{left_out}"{tail}', True


def _spelled(text: str) -> str:
    return _IMITATION.sub(
        lambda verb: "".join(f"\\u{ord(char):04x}" for char in verb[0]),
        escape_invisible_chars(text),
    )
