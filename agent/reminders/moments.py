"""The moments of a rule, in seconds that a clock on the wall shows, found without walking from the
first. Pure.

The days of one period of a rule (a day, a week, a month, a year) are those that fit each of its
parts, and each has the same times. A rule of less than a day has the day as its period.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, date, datetime, time, timedelta
from itertools import pairwise
from math import gcd
from zoneinfo import ZoneInfo

from agent.reminders.day_filter import DayFilter
from agent.reminders.rules import UNITS, Rule
from agent.reminders.wall_clock import to_instant, to_shown
from agent.reminders.workdays import WorkCalendar

#: How far ahead anything is looked for.
MOST_YEARS = 10
DAY_SECONDS = 86_400
_YEAR_ONE = datetime.combine(date.min, time.min)
_MOST_DAYS = 366 * MOST_YEARS
_MONTHS = {"MONTHLY": 1, "YEARLY": 12}


class RuleMoments:
    """The moments of ``rule`` from ``first`` on."""

    def __init__(self, rule: Rule, first: datetime, zone: ZoneInfo, calendar: WorkCalendar) -> None:
        self._rule, self._zone = rule, zone
        self._start = to_shown(first, zone)
        self._first = _to_seconds(self._start)
        self._end = _find_end(rule, zone)
        self._days = DayFilter(rule, self._start.date(), calendar)

    def find_next(self, after: datetime) -> datetime | None:
        """The first instant after ``after``, in UTC; None where there is none in time."""
        low = max(self._first, _to_seconds(to_shown(after, self._zone)))
        number = self._count_below(low) if self._rule.count else 0
        for base, moments in self._list_periods(low, low + _MOST_DAYS * DAY_SECONDS):
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
        """The moments of each period from that of ``low`` to that of ``high``, in seconds from the
        number before them."""
        rule = self._rule
        times = list_times(rule, self._start)
        for span in _list_spans(rule, self._start.date(), low // DAY_SECONDS, high // DAY_SECONDS):
            days = [day for day in span if self._days.fits(date.fromordinal(day + 1))]
            if rule.freq in UNITS:
                aligned = align_times(times, rule, self._start, days[0]) if days else ()
                yield span.start * DAY_SECONDS, aligned
            else:
                moments = [day * DAY_SECONDS + second for day in days for second in times]
                yield 0, _pick(moments, rule.by.get("BYSETPOS"))


def list_times(rule: Rule, start: datetime) -> Sequence[int]:
    """The seconds of a day at which a rule has its moments; of one of less than a day, all that its
    parts allow."""
    unit = UNITS.get(rule.freq, DAY_SECONDS)
    if rule.freq == "SECONDLY":
        return range(DAY_SECONDS)
    all_hours = range(24) if unit < DAY_SECONDS else (start.hour,)
    all_minutes = range(60) if unit < UNITS["HOURLY"] else (start.minute,)
    hours = rule.by.get("BYHOUR", all_hours)
    minutes = rule.by.get("BYMINUTE", all_minutes)
    seconds = rule.by.get("BYSECOND", (start.second,))
    return [h * 3600 + m * 60 + s for h in hours for m in minutes for s in seconds]


def align_times(
    times: Sequence[int], rule: Rule, start: datetime, day: int, interval: int = 0
) -> Sequence[int]:
    """Those of ``times`` that a rule of less than a day has on ``day`` (from the first of year 1):
    of every ``interval`` of its units one, the first in that of ``start``."""
    unit, interval = UNITS[rule.freq], interval or rule.interval
    phase = (_to_seconds(start) // unit - day * (DAY_SECONDS // unit)) % interval
    if len(times) == DAY_SECONDS // unit:
        return times[phase::interval]
    return [second for second in times if second // unit % interval == phase % interval]


def find_least_gap(rule: Rule, start: datetime) -> int:
    """The seconds between two moments, at least."""
    times = list_times(rule, start)
    if rule.freq not in UNITS:
        return _least_between(times)
    unit = UNITS[rule.freq]
    step = gcd(rule.interval, DAY_SECONDS // unit)
    gap = _least_between(align_times(times, rule, start, start.toordinal(), step))
    return gap if gap < unit else max(gap, rule.interval * unit)


def _least_between(moments: Sequence[int]) -> int:
    """Of moments of each day."""
    around = [*moments, moments[0] + DAY_SECONDS] if moments else []
    return min((later - earlier for earlier, later in pairwise(around)), default=DAY_SECONDS)


def _list_spans(rule: Rule, start: date, low: int, high: int) -> Iterator[range]:
    """The days (from the first of year 1) of each period from that of ``low`` to that of
    ``high``."""
    if size := _MONTHS.get(rule.freq):
        first, last = (_month(date.fromordinal(day + 1)) // size for day in (low, high))
        base = _month(start) // size
        for number in range(
            base + (first - base) // rule.interval * rule.interval, last + 1, rule.interval
        ):
            yield range(_month_start(number * size), _month_start((number + 1) * size))
        return
    size = 7 if rule.freq == "WEEKLY" else 1
    step = size * (1 if rule.freq in UNITS else rule.interval)
    base = start.toordinal() - 1
    base -= (base - rule.week_start) % 7 if size > 1 else 0
    for day in range(base + (low - base) // step * step, high + 1, step):
        yield range(day, day + size)


def _month(day: date) -> int:
    return day.year * 12 + day.month - 1


def _month_start(month: int) -> int:
    return date(month // 12, month % 12 + 1, 1).toordinal() - 1


def _pick(moments: list[int], places: tuple[int, ...] | None) -> list[int]:
    """Those at ``places``, from 1, or from the last, -1."""
    if places is None:
        return moments
    indexes = (place - 1 if place > 0 else len(moments) + place for place in places)
    return [moments[index] for index in sorted({*indexes}) if 0 <= index < len(moments)]


def _find_end(rule: Rule, zone: ZoneInfo) -> int:
    """The last second that the rule allows."""
    if isinstance(rule.until, datetime):
        end = to_shown(rule.until, zone) if rule.until.tzinfo else rule.until
        return _to_seconds(end)
    return _to_seconds(datetime.combine(rule.until or date(MAXYEAR, 12, 31), time.max))


def _to_seconds(shown: datetime) -> int:
    return (shown - _YEAR_ONE) // timedelta(seconds=1)
