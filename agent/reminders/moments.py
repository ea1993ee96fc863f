"""The moments of a rule, in seconds that a clock on the wall shows, found without walking from the
first. Pure.

The days of one period of a rule (a day, a week, a month, a year) are those that fit each of its
parts, and each has the same times. A rule of less than a day has the day as its period.
"""

from bisect import bisect_left
from calendar import isleap, monthrange
from collections.abc import Callable, Iterator, Sequence
from datetime import MAXYEAR, date, datetime, time, timedelta
from itertools import pairwise
from math import gcd
from typing import Any
from zoneinfo import ZoneInfo

from agent.reminders.rules import UNITS, Rule
from agent.reminders.wall_clock import to_instant, to_shown
from agent.reminders.workdays import WorkCalendar

#: How far ahead anything is looked for.
MOST_YEARS = 10
DAY_SECONDS = 86_400
_MOST_SECONDS = 366 * MOST_YEARS * DAY_SECONDS
_YEAR_ONE = datetime.combine(date.min, time.min)
_MONTHS = {"MONTHLY": 1, "YEARLY": 12}


def _places(number: int, length: int) -> tuple[int, int]:
    # The place from the first, and from the last, as a negative number.
    return number, number - length - 1


def _weekday_places(day: date, number: int, length: int) -> list[tuple[int, int]]:
    places = 0, (number - 1) // 7 + 1, -((length - number) // 7) - 1
    return [(place, day.weekday()) for place in places]


#: What a day is called in each part of a rule; one of these is to be named there.
_CALLED: dict[str, Callable[[date], Sequence[Any]]] = {
    "BYMONTH": lambda day: (day.month,),
    "BYMONTHDAY": lambda day: _places(day.day, monthrange(day.year, day.month)[1]),
    "BYYEARDAY": lambda day: _places(day.timetuple().tm_yday, 365 + isleap(day.year)),
    # The 28th of December is always in the last week.
    "BYWEEKNO": lambda day: _places(
        (week := day.isocalendar()).week, date(week.year, 12, 28).isocalendar().week
    ),
    "BYDAY": lambda day: _weekday_places(day, day.timetuple().tm_yday, 365 + isleap(day.year)),
}


def _called_by(rule: Rule) -> dict[str, Callable[[date], Sequence[Any]]]:
    # The same for ``rule``: weekdays are counted in its months where it has months.
    if rule.freq != "MONTHLY" and "BYMONTH" not in rule.by:
        return _CALLED
    return _CALLED | {
        "BYDAY": lambda day: _weekday_places(day, day.day, monthrange(day.year, day.month)[1])
    }


def _list_day_parts(rule: Rule, first: date) -> dict[str, tuple[Any, ...]]:
    # The parts of ``rule`` that name days; what it does not say is as on its first day.
    parts = {name: rule.by[name] for name in _CALLED if name in rule.by}
    if parts.keys() & {"BYDAY", "BYMONTHDAY", "BYYEARDAY"}:
        return parts
    if rule.freq == "WEEKLY" or "BYWEEKNO" in parts:
        return parts | {"BYDAY": ((0, first.weekday()),)}
    of_year = {"BYMONTH": (first.month,)} if rule.freq == "YEARLY" else {}
    return of_year | parts | ({"BYMONTHDAY": (first.day,)} if rule.freq in _MONTHS else {})


class RuleMoments:
    """The moments of ``rule`` from ``first`` on."""

    def __init__(self, rule: Rule, first: datetime, zone: ZoneInfo, calendar: WorkCalendar) -> None:
        self._rule, self._zone, self._calendar = rule, zone, calendar
        self._start = to_shown(first, zone)
        self._first = _to_seconds(self._start)
        self._end = _find_end(rule, zone)
        parts, called = _list_day_parts(rule, self._start.date()), _called_by(rule)
        self._parts = [(frozenset(named), called[name]) for name, named in parts.items()]

    def find_next(self, after: datetime) -> datetime | None:
        """The first instant after ``after``, in UTC; None where there is none in time."""
        low = max(self._first, _to_seconds(to_shown(after, self._zone)))
        number = self._count_below(low) if self._rule.count else 0
        for base, moments in self._list_periods(low, low + _MOST_SECONDS):
            for moment in moments[bisect_left(moments, low - base) :]:
                number += 1
                if base + moment > self._end or 0 < self._rule.count < number:
                    return None
                shown = _YEAR_ONE + timedelta(seconds=base + moment)
                if (due := to_instant(shown, self._zone)) > after:
                    return due
        return None

    def count_to(self, until: datetime) -> int:
        """How many there are, the one at ``until`` included."""
        number = self._count_below(min(_to_seconds(to_shown(until, self._zone)), self._end) + 1)
        return min(number, self._rule.count) if self._rule.count else number

    def _count_below(self, high: int) -> int:
        return sum(
            max(0, bisect_left(moments, high - base) - bisect_left(moments, self._first - base))
            for base, moments in self._list_periods(self._first, high)
        )

    def _list_periods(self, low: int, high: int) -> Iterator[tuple[int, Sequence[int]]]:
        # The moments of each period from that of ``low`` to that of ``high``, in seconds from the
        # number before them.
        rule, start = self._rule, self._start
        times = list_times(rule, start)
        for span in _list_spans(rule, start.date(), low // DAY_SECONDS, high // DAY_SECONDS):
            days = [day for day in span if self._is_for(date.fromordinal(day + 1))]
            if days and rule.freq in UNITS:
                aligned = _align(times, rule, start, span.start, rule.interval)
                yield span.start * DAY_SECONDS, aligned
            elif days:
                moments = [day * DAY_SECONDS + second for day in days for second in times]
                yield 0, _pick(moments, rule.by.get("BYSETPOS"))

    def _is_for(self, day: date) -> bool:
        if self._rule.is_working_days and len(self._parts) == 1:
            return self._calendar.is_working(day)
        return not any(named.isdisjoint(called(day)) for named, called in self._parts)


def list_times(rule: Rule, start: datetime) -> Sequence[int]:
    """The seconds of a day at which a rule has its moments; of one of less than a day, all that its
    parts allow."""
    if rule.freq == "SECONDLY":
        return range(DAY_SECONDS)
    hours = rule.by.get("BYHOUR", range(24) if rule.freq in UNITS else (start.hour,))
    minutes = rule.by.get("BYMINUTE", range(60) if rule.freq == "MINUTELY" else (start.minute,))
    seconds = rule.by.get("BYSECOND", (start.second,))
    return [h * 3600 + m * 60 + s for h in hours for m in minutes for s in seconds]


def find_least_gap(rule: Rule, start: datetime) -> int:
    """The seconds between two moments, at least."""
    moments, unit = list_times(rule, start), UNITS.get(rule.freq, DAY_SECONDS)
    if unit < DAY_SECONDS:
        # On other days there may be others, but every one of these units apart.
        step = gcd(rule.interval, DAY_SECONDS // unit)
        moments = _align(moments, rule, start, start.toordinal() - 1, step)
    around = [*moments, moments[0] + DAY_SECONDS] if moments else []
    gap = min((later - earlier for earlier, later in pairwise(around)), default=DAY_SECONDS)
    return gap if gap < unit or unit == DAY_SECONDS else max(gap, rule.interval * unit)


def _align(
    times: Sequence[int], rule: Rule, start: datetime, day: int, interval: int
) -> Sequence[int]:
    # Those of ``times`` on ``day`` that are some intervals of units after ``start``.
    unit = UNITS[rule.freq]
    phase = (_to_seconds(start) // unit - day * (DAY_SECONDS // unit)) % interval
    if len(times) == DAY_SECONDS // unit or interval == 1:
        return times[phase::interval]
    return [second for second in times if second // unit % interval == phase]


def _list_spans(rule: Rule, start: date, low: int, high: int) -> Iterator[range]:
    # The days (from the first of year 1) of each period from that of ``low`` to that of
    # ``high``.
    if size := _MONTHS.get(rule.freq):
        first, last = (_to_month(date.fromordinal(day + 1)) // size for day in (low, high))
        base = _to_month(start) // size
        first = base + (first - base) // rule.interval * rule.interval
        for number in range(first, last + 1, rule.interval):
            yield range(_month_start(number * size), _month_start((number + 1) * size))
        return
    size = 7 if rule.freq == "WEEKLY" else 1
    step = size * (1 if rule.freq in UNITS else rule.interval)
    base = start.toordinal() - 1
    base -= (base - rule.week_start) % size
    for day in range(base + (low - base) // step * step, high + 1, step):
        yield range(day, day + size)


def _to_month(day: date) -> int:
    return day.year * 12 + day.month - 1


def _month_start(month: int) -> int:
    return date(month // 12, month % 12 + 1, 1).toordinal() - 1


def _pick(moments: list[int], places: Sequence[int] | None) -> list[int]:
    # Those at ``places``, from 1, or from the last, -1.
    if places is None:
        return moments
    indexes = {place - 1 if place > 0 else len(moments) + place for place in places}
    return [moments[index] for index in sorted(indexes) if 0 <= index < len(moments)]


def _find_end(rule: Rule, zone: ZoneInfo) -> int:
    # The last second that the rule allows.
    if isinstance(rule.until, datetime):
        return _to_seconds(to_shown(rule.until, zone) if rule.until.tzinfo else rule.until)
    return _to_seconds(datetime.combine(rule.until or date(MAXYEAR, 12, 31), time.max))


def _to_seconds(shown: datetime) -> int:
    return (shown - _YEAR_ONE) // timedelta(seconds=1)
