"""An owner's word on a waiting call, as it is written in a chat. Pure.

::

    批准 482913
    拒绝 482913
    approve 482913 {"amount": 5}

The last form approves the call with other arguments, all of them.
"""

import re
from dataclasses import dataclass
from typing import Any

from tools.arguments import parse_arguments
from tools.errors import InvalidArguments

CODE_DIGITS = 6

_YES = ("批准", "同意", "approve")
_NO = ("拒绝", "驳回", "refuse", "reject")
_PATTERN = re.compile(
    r"\s*(?:\[(?:回复:|@)[^\]]*\]\s*)*"  # whom the message quotes or mentions
    rf"(?:(?P<yes>{'|'.join(_YES)})|(?P<no>{'|'.join(_NO)}))"
    rf"\s*(?P<code>\d{{{CODE_DIGITS}}})\s*(?P<arguments>\{{.*\}})?\s*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Word:
    """Yes or no to the question ``code``; ``arguments`` replace the call's, None leaves them."""

    is_approval: bool
    code: str
    arguments: dict[str, Any] | None = None
    fault: str = ""
    """Why the arguments cannot be read; such a word decides nothing."""


def parse_word(text: str) -> Word | None:
    """What ``text`` decides; None for everything that is not such a word and nothing else."""
    match = _PATTERN.fullmatch(text) if len(text) <= 10_000 else None
    if match is None:
        return None
    word = Word(is_approval=match["yes"] is not None, code=match["code"])
    return _with_arguments(word, match["arguments"]) if match["arguments"] else word


def _with_arguments(word: Word, text: str) -> Word:
    if not word.is_approval:
        return Word(word.is_approval, word.code, fault="拒绝时不需要参数")
    try:
        return Word(word.is_approval, word.code, arguments=parse_arguments(text))
    except InvalidArguments as error:
        return Word(word.is_approval, word.code, fault=str(error))
