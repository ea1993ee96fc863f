"""Where sentences end, and a cut answer ended at one. Pure; linear time."""

import re
from collections import deque
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


QUOTES = r"[”’\"'」』）)】》\]*_~]{0,8}"
ENDS_SENTENCE = re.compile(rf"[。！？!?….]{QUOTES}\Z")
"""Matches in a text that ends with a sentence."""
#: A dot after a digit may be the number of a list or, at the end of what was cut, a decimal point.
_SENTENCE_END = re.compile(rf"(?:[。！？!?…]|(?<!\d)\.(?=[^\w.]|\Z)){QUOTES}")
_UNFINISHED_LINE = re.compile(r"[：:，,、；;（(]\Z|\A[ \t]*(?:#|\Z|\d+[.)、]?\Z|[-*+]\Z)")
CUT = "…"


def end_at_sentence(text: str) -> str:
    """``text``, which a limit cut, up to its last full sentence or full line.

    Closing quotes and brackets belong to the sentence. Headings and lines that announce something
    end nothing. In code the last full line counts, and the fence is closed. Where that would lose
    more than half, all of ``text`` stays, with an ellipsis.
    """
    text = text.rstrip()
    if fence := open_fence(text):
        return _close_fence(text, *fence)
    end = _last_end(text)
    if end == len(text):
        return text
    if 2 * end < len(text):
        return text if text.endswith(CUT) else text + CUT
    return text[:end].rstrip()


def _last_end(text: str) -> int:
    sentences = deque(_SENTENCE_END.finditer(text), maxlen=1)
    sentence = sentences[0].end() if sentences else 0
    line = text.rfind("\n")
    while line > sentence:
        before = text.rfind("\n", 0, line)
        if not _UNFINISHED_LINE.search(text[before + 1 : line].rstrip()):
            return line
        line = before
    return sentence


def _close_fence(text: str, start: int, mark: str) -> str:
    head = text.rpartition("\n")[0]
    if len(head) > start and 2 * len(head) >= len(text):
        text = head.rstrip()
    return f"{text}\n{mark}"
