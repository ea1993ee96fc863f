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
from enum import Enum, auto

#: The quote that stands before the words of a message, and the mentions that clients add to it.
_BEFORE = re.compile(r"\[回复:[^\]]*\]\s*(?:\[@[^\]]*\]\s*)*")
_NAME = re.compile(r"[^\W\d]+")
_DIGITS = {ord("０") + digit: str(digit) for digit in range(10)}
MOST_ARGUMENTS = 500


class CommandAudience(Enum):
    """Who may give a command. Managers: the bot's owners; in a group its owner and administrators
    too, in a private chat everybody."""

    EVERYBODY = auto()
    MANAGERS = auto()
    OWNERS = auto()


_ALL, _MANAGERS, _OWNERS = CommandAudience


class CommandName(Enum):
    """Each with its name in Chinese, who may give it, and whether anything may stand behind it:
    ``/why not?`` is a question and no command."""

    HELP = "help", "帮助", _ALL, False
    RESET = "reset", "重置", _MANAGERS, False
    STOP = "stop", "停止", _ALL, False
    UNDO = "undo", "撤回", _ALL, False
    STATUS = "status", "状态", _ALL, False
    WHY = "why", "为什么", _ALL, False
    ON = "on", "开启", _OWNERS, False
    OFF = "off", "关闭", _OWNERS, True
    ONLY = "only", "只答", _OWNERS, True
    ALLOW = "allow", "允许", _OWNERS, True
    DENY = "deny", "禁止", _OWNERS, True
    PERSONA = "persona", "人设", _OWNERS, True
    MODEL = "model", "模型", _OWNERS, True
    BUDGET = "budget", "预算", _OWNERS, True
    REMIND = "remind", "提醒", _ALL, True
    REMINDERS = "reminders", "提醒列表", _ALL, False
    UNREMIND = "unremind", "取消提醒", _ALL, True
    MUTE = "mute", "禁言", _MANAGERS, True
    UNMUTE = "unmute", "解禁", _MANAGERS, True
    KICK = "kick", "踢", _MANAGERS, True

    def __init__(
        self, english: str, chinese: str, audience: CommandAudience, takes_arguments: bool
    ) -> None:
        self.english, self.chinese = english, chinese
        self.audience, self.takes_arguments = audience, takes_arguments


MEMBER_COMMANDS = frozenset({CommandName.MUTE, CommandName.UNMUTE, CommandName.KICK})
"""Those against members of a group, which are none where manners do not say so."""
_NAMES = {word: name for name in CommandName for word in (name.english, name.chinese)}


@dataclass(frozen=True, slots=True)
class Command:
    """``arguments`` is what stands behind the name, ends trimmed; its digits ASCII, but those of a
    reminder."""

    name: CommandName
    arguments: str = ""


def parse_command(text: str, prefix: str, *, on_members: bool = False) -> Command | None:
    """The command in the rendered ``text`` of a message; None for everything else, and without a
    ``prefix``. Full-width signs count as what they stand for. ``on_members``: also one of
    :data:`MEMBER_COMMANDS`."""
    if not prefix:
        return None
    found = _BEFORE.match(text)
    words = text[found.end() if found else 0 :].lstrip()
    if not _same(words[: len(prefix)], prefix):
        return None
    words = words[len(prefix) :]
    named = _NAME.match(words)
    name = _NAMES.get(unicodedata.normalize("NFKC", named[0]).casefold()) if named else None
    if name is None or named is None or (name in MEMBER_COMMANDS and not on_members):
        return None
    arguments = words[named.end() :].strip()
    if name is not CommandName.REMIND:  # whose text stays as it is
        arguments = arguments[:MOST_ARGUMENTS].translate(_DIGITS)
    return Command(name, arguments) if name.takes_arguments or not arguments else None


def _same(text: str, prefix: str) -> bool:
    return text == prefix or (
        not text.isascii()
        and unicodedata.normalize("NFKC", text) == unicodedata.normalize("NFKC", prefix)
    )
