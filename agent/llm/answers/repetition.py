"""Answers that end in a loop, as small models write them until a limit stops them. Pure; linear
time."""

import re
from collections.abc import Sequence

from agent.llm.answers.sentences import CUT, QUOTES

WINDOW = 8000
"""Characters at the end, and numbered lines, that a loop is looked for in."""
LINES_WINDOW = 100_000
"""Characters at the end whose lines are looked at."""
#: How much must repeat before it is a loop, in Latin letters; a CJK character weighs two. Whoever
#: asks for a line ten times gets it, and laughter may fill a line or two.
LEAST_WEIGHT = 200
#: How often, by the weight of what repeats: short things repeat in songs, lists and code too.
_LEAST_TIMES = ((20, 10), (100, 5), (400, 4), (WINDOW, 3))
_SHORTEST_KEPT = 12
_COUNTER = re.compile(r"\A[ \t]*(?:\(?\d{1,6}[.)、:：）]|[-*+•])[ \t]*")
_SENTENCE_END = re.compile(r"[。！？!?…\n]|\.(?=\s)")
_ENDS_WHOLE = re.compile(rf"(?:[。！？!?….]{QUOTES}[ \t]*|\n\s*)\Z")


def is_repeating(text: str) -> bool:
    """Whether ``text`` says the same over and over up to its end.

    That is: its end consists of one passage again and again, or of the same lines in turn, apart
    from the numbers in front of them; at least ``LEAST_WEIGHT`` in all, and more often the
    shorter the passage is (10 times a word, 3 times a long paragraph). The last time may be cut.
    What holds no letters or figures (rules of tables, dots) is no passage.
    """
    return 2 * len(text) >= LEAST_WEIGHT and _find_loop(text.rstrip()) is not None


def cut_repetition(text: str) -> str:
    """``text`` without its loop: up to the end of the sentence or line in which the first
    occurrence ends; where there is none, with an ellipsis. A text without a loop comes back as it
    is."""
    stripped = text.rstrip()
    if not (loop := _find_loop(stripped)):
        return text
    start, end = loop
    length = end - start
    end = start + length * max(1, _SHORTEST_KEPT // length)
    if not _ENDS_WHOLE.search(stripped[:end]):
        found = _SENTENCE_END.search(stripped, end, end + length)
        end = found.end() if found else end
    said = stripped[:end]
    return said.rstrip() if _ENDS_WHOLE.search(said) else said.rstrip() + CUT


def _find_loop(text: str) -> tuple[int, int] | None:
    """Start and end of the first occurrence of what is repeated to the end."""
    length, period = _longest_period(text[-WINDOW:])
    if not length:
        return _find_line_loop(text)
    start = len(text) - length
    while start and text[start - 1] == text[start - 1 + period]:
        start -= 1
    return start, start + period


def _find_line_loop(text: str) -> tuple[int, int] | None:
    """The same of lines that differ only in the number in front of them."""
    lines = text[-LINES_WINDOW:].split("\n")
    said = [_COUNTER.sub("", line) for line in lines]
    length, period = _longest_period(said[-WINDOW:])
    if not length:  # the last line may be cut
        last = said.pop()
        length, period = _longest_period(said[-WINDOW:])
        length *= length > 0 and (last.isdigit() or said[-period].startswith(last))
    if not length:
        return None
    first = len(said) - length
    while first and said[first - 1] == said[first - 1 + period]:
        first -= 1
    start = len(text) - len("\n".join(lines[first:]))
    return start, start + len("\n".join(lines[first : first + period]))


def _longest_period(items: Sequence[str]) -> tuple[int, int]:
    """Length and period of the longest end of ``items`` that is a loop; zeros if none is.

    The prefix function of Knuth, Morris and Pratt over the reversed items gives the smallest
    period of each of their ends.
    """
    last = items[::-1]
    borders = [0] * len(last)
    best = (0, 0)
    for index in range(1, len(last)):
        border = borders[index - 1]
        while border and last[index] != last[border]:
            border = borders[border - 1]
        borders[index] = border + (last[index] == last[border])
        length, period = index + 1, index + 1 - borders[index]
        if length >= 3 * period:
            best = (length, period)
    return best if best[0] and _is_loop(items[len(items) - best[0] :], best[1]) else (0, 0)


def _is_loop(items: Sequence[str], period: int) -> bool:
    passage = "".join(items[:period])
    weight = sum(2 if character > "⺀" else 1 for character in passage)
    times = len(items) // period
    least = next(least for most, least in _LEAST_TIMES if weight < most or most == WINDOW)
    return (
        weight * len(items) >= LEAST_WEIGHT * period
        and times >= least
        and any(character.isalnum() for character in passage)
    )
