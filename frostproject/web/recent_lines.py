"""The last log lines of this process, kept in memory for the page that shows them."""

import logging
from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from frostproject.web.logs import run_of

#: Lines that are kept, and characters of each.
LINES_KEPT, LINE_CHARS = 1_000, 4_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line as it was logged, secrets blotted out. ``number`` grows by one from line to line."""

    number: int
    level: int
    text: str
    run: int = 0

    @property
    def level_name(self) -> str:
        return logging.getLevelName(self.level)


class RecentLines(logging.Handler):
    """Keeps the newest :data:`LINES_KEPT` lines. All handlers of the process share them."""

    lines: ClassVar[deque[LogLine]] = deque(maxlen=LINES_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        number = self.lines[-1].number + 1 if self.lines else 1
        text = self.format(record)[:LINE_CHARS]
        self.lines.append(LogLine(number, record.levelno, text, run_of(record)))


def list_recent_lines(
    least_level: int = logging.NOTSET, words: str = "", run: int = 0
) -> list[LogLine]:
    """The lines that are kept, the newest first: of at least ``least_level``, with ``words`` in
    them, and of ``run``, where those are given."""
    folded = words.casefold()
    return [
        line
        for line in reversed(list(RecentLines.lines))
        if line.level >= least_level and folded in line.text.casefold() and run in (0, line.run)
    ]
