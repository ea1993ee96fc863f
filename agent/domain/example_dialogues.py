"""Example dialogues as people write them: lines of a user and of the bot, in turn. Pure."""

import re
from collections.abc import Iterable

from django.utils.translation import gettext

LINE = re.compile(
    r"\s*(?:(?P<user>用户|user)|(?P<bot>你|助手|bot|assistant))\s*[:：](?P<words>.*)", re.IGNORECASE
)


class ExampleError(ValueError):
    """What is wrong, in a translated sentence that names the line."""


def parse_examples(text: str) -> list[list[str]]:
    """``[[user, assistant], …]`` of lines that begin with 用户： and 你：, or User: and Bot:. Other
    lines continue the one before. Raises :class:`ExampleError`."""
    turns: list[tuple[int, bool, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := LINE.fullmatch(line):
            turns.append((number, found["bot"] is not None, [found["words"].strip()]))
        elif turns:
            turns[-1][2].append(line.rstrip())
        elif line.strip():
            raise _error(number, gettext("begin with “用户：” or “User:”."))
    return [list(pair) for pair in _pairs(turns)]


def format_examples(examples: Iterable[Iterable[str]]) -> str:
    """``examples`` as :func:`parse_examples` reads them."""
    return "\n\n".join(f"用户：{user}\n你：{bot}" for user, bot in examples)


def _pairs(turns: list[tuple[int, bool, list[str]]]) -> Iterable[tuple[str, str]]:
    said = ""
    last = 0
    for number, is_bot, lines in turns:
        words = "\n".join(lines).strip()
        if not words:
            raise _error(number, gettext("nothing is said here."))
        if is_bot and not said:
            raise _error(number, gettext("a line of the user has to stand before it."))
        if not is_bot and said:
            raise _error(last, gettext("an answer is missing: write “你：” or “Bot:” below."))
        if is_bot:
            yield said, words
        said, last = ("" if is_bot else words), number
    if said:
        raise _error(last, gettext("an answer is missing: write “你：” or “Bot:” below."))


def _error(number: int, reason: str) -> ExampleError:
    return ExampleError(
        gettext("Line %(number)d: %(reason)s") % {"number": number, "reason": reason}
    )
