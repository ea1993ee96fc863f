"""Regular expressions from outside the code: from schemas of the admin, of plugins, of servers.

Python's ``re`` backtracks, and may practically never finish with thirty letters while it blocks
every thread. RE2 reads a text once and rejects patterns for which it cannot. Its classes are those
of JSON Schema's own dialect: ``\\d``, ``\\w``, ``\\s`` and ``\\b`` are ASCII; ``\\p{L}`` and
``\\p{Han}`` are not.
"""

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import re2

MAX_CHARS = 1_000
"""Of one pattern."""
MAX_MEMORY = 2 * 1024 * 1024
"""Bytes that one pattern may take, ready to be matched."""
STEPS = 100_000_000
"""Parts of a pattern times bytes of a text, for all patterns that one value is checked with: less
than half a second."""
_left: ContextVar[list[int] | None] = ContextVar("pattern_steps_left", default=None)

_SPELLED = re.compile(
    r"\\u\{(?P<braced>[0-9A-Fa-f]{1,6})\}|\\u(?P<four>[0-9A-Fa-f]{4})|\\U(?P<eight>[0-9A-Fa-f]{8})"
    r"|\\(?P<sign>[pP])\{(?:Script|sc)=(?P<script>\w+)\}|\\(?P<escaped>.)",
    re.DOTALL,
)
_LOOKS_AROUND = re.compile(r"\(\?<?[=!]")
_REFERS_BACK = re.compile(r"\\[1-9]|\\k[<{']|\(\?P=")


def gettext_noop(text: str) -> str:
    """Marks what is translated elsewhere; Django's own would load Django."""
    return text


TOO_LONG: Final = gettext_noop("it has more than %(count)d characters")
LOOKS_AROUND: Final = gettext_noop(
    "patterns here know no lookahead and no lookbehind, (?=…) (?!…) (?<=…) (?<!…), because these"
    " can take for ever."
    " Write several patterns in “allOf”, or what must not match as “not”: {“pattern”: …}"
)
REFERS_BACK: Final = gettext_noop(
    "patterns here know no references back to a group, like \\1, because these can take for ever."
    " List what is possible, separated by “|” or as “enum”"
)
TOO_LARGE: Final = gettext_noop(
    "it is too large. Repeat less in it, and bound the length with “minLength” and “maxLength”"
)
NO_PATTERN: Final = gettext_noop("it is no regular expression of RE2: %(fault)s")


class PatternRefused(ValueError):  # noqa: N818 - it says what happened
    """The pattern cannot be matched here; the message says why and what to write instead, in
    English.

    ``text`` % ``values`` is the message, for callers that translate it: processes of plugins
    match patterns too, and load no Django.
    """

    def __init__(self, text: str, **values: object) -> None:
        super().__init__(text % values)
        self.text, self.values = text, values


class TooMuchText(Exception):  # noqa: N818 - it says what is wrong
    """The values are too long for their patterns."""


@functools.lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Any:
    """``pattern`` as RE2 has it. Raises :class:`PatternRefused`."""
    if len(pattern) > MAX_CHARS:
        raise PatternRefused(TOO_LONG, count=MAX_CHARS)
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    try:
        return re2.compile(_SPELLED.sub(_as_re2_spells, pattern), options)
    except (re2.error, UnicodeEncodeError) as error:
        raise _refusal(pattern, error) from error


def search_pattern(pattern: str, text: str) -> bool:
    """Whether ``pattern`` matches anywhere in ``text``; ``^`` and ``$`` are the ends of the text.

    Raises :class:`PatternRefused`, and :class:`TooMuchText` within :func:`limit_matching`.
    """
    matcher = compile_pattern(pattern)
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair has no place in UTF-8
    if (left := _left.get()) is not None:
        left[0] -= matcher.programsize * len(text)
        if left[0] < 0:
            raise TooMuchText
    return matcher.search(text) is not None


@contextmanager
def limit_matching() -> Iterator[None]:
    """Have all patterns that are matched inside take no more than :data:`STEPS` together."""
    token = _left.set([STEPS])
    try:
        yield
    finally:
        _left.reset(token)


def _as_re2_spells(escape: re.Match[str]) -> str:
    if number := escape["braced"] or escape["four"] or escape["eight"]:
        if 0xD800 <= int(number, 16) <= 0xDFFF:  # half a pair, which no text has
            return escape[0]
        return f"\\x{{{number}}}"
    if escape["script"]:
        return f"\\{escape['sign']}{{{escape['script']}}}"
    return r"\z" if escape["escaped"] == "Z" else escape[0]


def _refusal(pattern: str, error: Exception) -> PatternRefused:
    if _LOOKS_AROUND.search(pattern):
        return PatternRefused(LOOKS_AROUND)
    if _REFERS_BACK.search(pattern):
        return PatternRefused(REFERS_BACK)
    said = (
        error.args[0].decode("utf-8", "replace")
        if error.args and isinstance(error.args[0], bytes)
        else str(error)
    )
    if "too large" in said or "repetition size" in said:
        return PatternRefused(TOO_LARGE)
    return PatternRefused(NO_PATTERN, fault=said[:200])
