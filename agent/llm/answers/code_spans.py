"""Which parts of a Markdown text are code. Pure; linear time."""

import re
from collections.abc import Iterator

#: Where code may begin: a fence at the beginning of a line, or backticks within one.
CODE = r"(?P<fence>^[ \t]*(?:`{3,}(?=[^`\n]*$)|~{3,}))|(?P<ticks>`+)"
_CODE = re.compile(CODE, re.MULTILINE)
#: More backticks than these in a row are no inline code. It keeps the search linear: within a
#: line each number of backticks can be left without its end once.
_MOST_TICKS = 8


def code_end(text: str, found: re.Match[str]) -> int:
    """Where the code ends that begins with ``found``, a match of :data:`CODE` in ``text``.

    A fence without an end reaches to the end of the text, as in CommonMark (4.5). Backticks
    without an end in their line are no code: they end where they stand.
    """
    if found["fence"]:
        end = _closing_fence(text, found)
        return end.end() if end else len(text)
    ticks = found["ticks"]
    if len(ticks) > _MOST_TICKS:
        return found.end()
    end = re.compile(rf"(?<!`){ticks}(?!`)|\n").search(text, found.end())
    return end.end() if end and end[0] == ticks else found.end()


def prose_parts(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each part of ``text`` that is not code."""
    position = start = 0
    while found := _CODE.search(text, position):
        position = code_end(text, found)
        if position > found.end():
            yield start, found.start()
            start = position
    yield start, len(text)


def open_fence(text: str) -> tuple[int, str] | None:
    """Where the code fence begins that ``text`` leaves open, and its mark; or None."""
    position = 0
    while found := _CODE.search(text, position):
        if found["fence"] and not _closing_fence(text, found):
            return found.start(), found["fence"].strip()
        position = code_end(text, found)
    return None


def _closing_fence(text: str, found: re.Match[str]) -> re.Match[str] | None:
    mark = found["fence"].strip()
    closing = rf"^[ \t]*{mark[0]}{{{len(mark)},}}[ \t]*$"
    return re.compile(closing, re.MULTILINE).search(text, found.end())
