"""An owner's word on a waiting call, as it is written in a chat. Pure.

::

    批准 482913
    拒绝 482913
    approve 482913 {"amount": 5}

The last form approves the call with other arguments, all of them. A text that only resembles these
is parsed too, with an error, so that its sender learns of the mistake. Without a number it is one
only in a message that quotes the question. Full-width digits are digits, and what ends a sentence
ends such a word too.
"""

import re
from dataclasses import dataclass
from typing import Any

from tools.errors import InvalidArguments
from tools.schemas.arguments import parse_arguments

CODE_DIGITS = 6

_YES = ("批准", "同意", "approve")
_NO = ("拒绝", "驳回", "refuse", "reject")
VERBS = (*_YES, *_NO)
_END = "。．.！!~～ "
_DIGIT = "[0-9０-９]"
_PLAIN_DIGITS = str.maketrans("０１２３４５６７８９", "0123456789")
_PATTERN = re.compile(
    r"(?:\[(?:回复:|@)[^\]]*\]\s*)*"  # people that the message quotes or mentions
    rf"(?:(?P<yes>{'|'.join(_YES)})|(?P<no>{'|'.join(_NO)}))"
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
    if not rest.strip(_END):
        return word
    return (
        _with_arguments(word, rest)
        if rest.startswith(("{", "｛")) or rest.endswith(("}", "｝"))
        else None
    )


def _with_arguments(word: ApprovalReply, text: str) -> ApprovalReply:
    if not word.is_approval:
        return ApprovalReply(word.is_approval, word.code, problem="拒绝时不需要参数")
    try:
        return ApprovalReply(word.is_approval, word.code, arguments=parse_arguments(text))
    except InvalidArguments as error:
        return ApprovalReply(word.is_approval, word.code, problem=str(error))
