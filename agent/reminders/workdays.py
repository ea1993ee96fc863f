"""Which days people work: Monday to Friday, but for holidays and the days worked in their place.
Pure, but for one small file.

A file has a day or a span a line, and says which it is; ``#`` begins a comment::

    off  2026-10-01..2026-10-07   # National Day
    work 2026-10-10               # a Saturday that is worked

Days that it does not name are as the week says.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path

#: China's, as its State Council announced them; each year is added when it is known.
SHIPPED = Path(__file__).with_name("workdays.txt")
FIRST_DAY_OFF = 5
_LONGEST_SPAN = 366
_LINE = re.compile(r"(off|work)\s+(\d{4}-\d\d-\d\d)(?:\.\.(\d{4}-\d\d-\d\d))?")


@dataclass(frozen=True, slots=True)
class WorkCalendar:
    """Days that are not as the week says."""

    off: frozenset[date] = frozenset()
    worked: frozenset[date] = frozenset()

    def is_working(self, day: date) -> bool:
        """Whether people work on ``day``; a day that is named as both is worked."""
        return day in self.worked or (day.weekday() < FIRST_DAY_OFF and day not in self.off)


@lru_cache(maxsize=4)
def parse_calendar(text: str) -> WorkCalendar:
    """The calendar that a file says. Raises :class:`ValueError` with the first line that is
    wrong."""
    days: dict[str, set[date]] = {"off": set(), "work": set()}
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        found = _LINE.fullmatch(line)
        try:
            kind, first, last = found.groups("") if found else ("", line, "")
            start = date.fromisoformat(first)
            length = (date.fromisoformat(last or first) - start).days + 1
            if not 0 < length <= _LONGEST_SPAN:
                raise ValueError(line)
            days[kind].update(start + timedelta(days=number) for number in range(length))
        except (KeyError, ValueError) as error:
            raise ValueError(line[:80]) from error
    return WorkCalendar(frozenset(days["off"]), frozenset(days["work"]))


def load_calendar(own: Path | None = None) -> WorkCalendar:
    """The calendar of the file ``own`` where there is one, else of the one that is shipped. Reads
    at every call. Raises :class:`ValueError` and :class:`OSError` for a file that cannot be
    used."""
    path = own if own and own.exists() else SHIPPED
    return parse_calendar(path.read_text(encoding="utf-8-sig"))
