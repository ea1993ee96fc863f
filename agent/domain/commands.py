"""Commands to the bot, as they are written in a chat. Pure.

::

    /help
    /deny 20002
    @bot /why           (quoting a message)

A word that is no command is left alone: the message is judged like any other.
"""

import re
from dataclasses import dataclass
from enum import Enum

#: Mentions and quotes that stand before the words of a message.
_BEFORE = re.compile(r"(?:\[(?:回复:|@)[^\]]*\]\s*)*")
MOST_ARGUMENTS = 500


class CommandName(Enum):
    """Each with its name in Chinese, and whether it is for owners alone."""

    HELP = "help", "帮助", False
    RESET = "reset", "重置", False
    STOP = "stop", "停止", False
    STATUS = "status", "状态", False
    WHY = "why", "为什么", False
    ON = "on", "开启", True
    OFF = "off", "关闭", True
    ALLOW = "allow", "允许", True
    DENY = "deny", "禁止", True
    PERSONA = "persona", "人设", True
    MODEL = "model", "模型", True
    BUDGET = "budget", "预算", True

    def __init__(self, english: str, chinese: str, is_for_owners: bool) -> None:
        self.english, self.chinese, self.is_for_owners = english, chinese, is_for_owners


_NAMES = {word: name for name in CommandName for word in (name.english, name.chinese)}


@dataclass(frozen=True, slots=True)
class Command:
    """``arguments`` is what stands behind the name, ends trimmed."""

    name: CommandName
    arguments: str = ""


def parse_command(text: str, prefix: str) -> Command | None:
    """The command in the rendered ``text`` of a message; None for everything else, and without a
    ``prefix``."""
    if not prefix or prefix not in text:
        return None
    words = text[_BEFORE.match(text).end() :].strip()  # type: ignore[union-attr]  # it matches ""
    if not words.startswith(prefix):
        return None
    name, _, rest = words[len(prefix) :].partition(" ")
    found = _NAMES.get(name.strip().casefold())
    return Command(found, rest.strip()[:MOST_ARGUMENTS]) if found else None
