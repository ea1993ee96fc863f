"""Commands to the bot, as they are written in a chat. Pure.

::

    /help
    /deny 20002
    @bot /why           (quoting a message)

A word that is no command is left alone: the message is judged like any other. So is one for
somebody else: a command behind the mention of another member, unless that came with a quote. What
stands in a quoted or forwarded message is not part of these words.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import Enum

#: The quote that stands before the words of a message, and the mentions that clients add to it.
_BEFORE = re.compile(r"\[回复:[^\]]*\]\s*(?:\[@[^\]]*\]\s*)*")
_NAME = re.compile(r"[^\W\d]+")
_DIGITS = {ord("０") + digit: str(digit) for digit in range(10)}
MOST_ARGUMENTS = 500


class CommandName(Enum):
    """Each with its name in Chinese, whether it is for owners alone, and whether anything may stand
    behind it: ``/why not?`` is a question and no command."""

    HELP = "help", "帮助", False, False
    RESET = "reset", "重置", False, False
    STOP = "stop", "停止", False, False
    STATUS = "status", "状态", False, False
    WHY = "why", "为什么", False, False
    ON = "on", "开启", True, False
    OFF = "off", "关闭", True, True
    ALLOW = "allow", "允许", True, True
    DENY = "deny", "禁止", True, True
    PERSONA = "persona", "人设", True, True
    MODEL = "model", "模型", True, True
    BUDGET = "budget", "预算", True, True

    def __init__(
        self, english: str, chinese: str, is_for_owners: bool, takes_arguments: bool
    ) -> None:
        self.english, self.chinese = english, chinese
        self.is_for_owners, self.takes_arguments = is_for_owners, takes_arguments


_NAMES = {word: name for name in CommandName for word in (name.english, name.chinese)}


@dataclass(frozen=True, slots=True)
class Command:
    """``arguments`` is what stands behind the name, ends trimmed, its digits ASCII."""

    name: CommandName
    arguments: str = ""


def parse_command(text: str, prefix: str) -> Command | None:
    """The command in the rendered ``text`` of a message; None for everything else, and without a
    ``prefix``. Full-width signs count as what they stand for."""
    if not prefix:
        return None
    found = _BEFORE.match(text)
    words = text[found.end() if found else 0 :].lstrip()
    if not _same(words[: len(prefix)], prefix):
        return None
    words = words[len(prefix) :]
    named = _NAME.match(words)
    name = _NAMES.get(unicodedata.normalize("NFKC", named[0]).casefold()) if named else None
    if name is None or named is None:
        return None
    arguments = words[named.end() :].strip()[:MOST_ARGUMENTS].translate(_DIGITS)
    return Command(name, arguments) if name.takes_arguments or not arguments else None


def _same(text: str, prefix: str) -> bool:
    return text == prefix or (
        not text.isascii()
        and unicodedata.normalize("NFKC", text) == unicodedata.normalize("NFKC", prefix)
    )
