"""What phrases mean together: the instant, the rule, or what has to be asked. Pure."""

from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta
from itertools import zip_longest
from zoneinfo import ZoneInfo

from agent.reminders.moments import MOST_YEARS
from agent.reminders.phrases import PARTS, Said
from agent.reminders.repeats import check_repeat, next_due
from agent.reminders.rules import DAY_NAMES, UNITS
from agent.reminders.unclear import Unclear, UnclearTime
from agent.reminders.wall_clock import to_instant, to_shown
from agent.reminders.workdays import WorkCalendar, load_calendar

_DAY = timedelta(days=1)
_HALF_DAY = timedelta(hours=12)
_MONDAY_TO_FRIDAY = ",".join(DAY_NAMES[:5])
#: Hours of which everybody knows the half of the day, where a day is said with them.
_KNOWN_HOURS = range(7, 13)
_FIRST_OF_MORNING = 6
#: Within so many years there is a 29th of February.
_LEAP_YEARS = 9
_NEXT_MONTHS = 13
_DAYS_OF = {"years": 366, "months": 31, "weeks": 7, "days": 1, "hours": 1 / 24}
_DAYS_OF |= {"minutes": 1 / 1_440, "seconds": 1 / 86_400}


@dataclass(frozen=True, slots=True)
class When:
    """``due_at`` is aware, in UTC, and in the future; with ``repeat``, a rule of
    :mod:`agent.reminders.repeats`, it is the first instant of the rule."""

    due_at: datetime
    repeat: str = ""


class Meaning:
    """Of what is ``said`` in ``words``, at ``now`` in ``zone``."""

    def __init__(self, said: Said, words: str, now: datetime, zone: ZoneInfo) -> None:
        self._said, self._words, self._zone = said, words, zone
        self._now = now.astimezone(UTC)
        self._shown = to_shown(now, zone)
        self._today = self._shown.date()

    def find(self, calendar: WorkCalendar | None) -> When:
        """Raises :class:`agent.reminders.unclear.UnclearTime`."""
        said, rule = self._said, ""
        if "every" in said:
            due, rule = self._find_repeat(calendar or load_calendar())
        elif said.keys() & {"except", "no_holidays"}:
            raise self._refuse(Unclear.HOLIDAYS)
        elif "instant" in said:
            due = self._read_instant()
        elif "span" in said and not said.keys() & {"clock", "part"}:
            due = self._shift()
        else:
            due = to_instant(self._choose(), self._zone)
        if due <= self._now:
            raise UnclearTime(Unclear.PAST, due=f"{to_shown(due, self._zone):%Y-%m-%d %H:%M}")
        if due > self._now + MOST_YEARS * 366 * _DAY:
            raise UnclearTime(Unclear.TOO_FAR, years=MOST_YEARS)
        return When(due, rule)

    def _refuse(self, reason: Unclear) -> UnclearTime:
        return UnclearTime(reason, words=self._words)

    def _read_instant(self) -> datetime:
        try:
            read = datetime.fromisoformat(self._said["instant"])
        except ValueError as error:
            raise self._refuse(Unclear.NO_SUCH_DAY) from error
        if read.year in {MINYEAR, MAXYEAR}:
            reason = Unclear.PAST if read.year == MINYEAR else Unclear.TOO_FAR
            raise UnclearTime(reason, due=self._words, years=MOST_YEARS)
        return read.astimezone(UTC) if read.tzinfo else to_instant(read, self._zone)

    def _shift(self) -> datetime:
        # A span from now: years to days as a calendar has them, hours to seconds as they pass.
        span = self._said["span"]
        if abs(sum(_DAYS_OF[unit] * number for unit, number in span.items())) > MOST_YEARS * 366:
            raise UnclearTime(Unclear.TOO_FAR, years=MOST_YEARS)
        now = self._now + timedelta(microseconds=-self._now.microsecond % 1_000_000)
        passed = {unit: span[unit] for unit in ("hours", "minutes", "seconds") if unit in span}
        if len(passed) == len(span):
            return now + timedelta(**passed)
        shown = to_shown(now, self._zone)
        months = shown.year * 12 + shown.month - 1
        months += span.get("years", 0) * 12 + span.get("months", 0)
        year, month = divmod(months, 12)
        day = min(shown.day, monthrange(year, month + 1)[1])
        shown = shown.replace(year=year, month=month + 1, day=day)
        shown += timedelta(weeks=span.get("weeks", 0), days=span.get("days", 0))
        return to_instant(shown, self._zone) + timedelta(**passed)

    def _choose(self) -> datetime:
        # What the clock shows at the first moment that is ahead, where it is sure.
        days = self._list_days()
        if "clock" not in self._said and self._said.get("part") != "noon":
            is_over = days[-1] < self._today
            reason = Unclear.PAST if is_over else Unclear.NO_HOUR
            raise UnclearTime(reason, words=self._words, due=self._words)
        hours = self._list_hours()
        if not self._said.keys() & {"day", "span"}:
            return self._choose_next(hours)
        for day, later in zip_longest(days, days[1:]):
            moments = [datetime.combine(day, time()) + hour for hour in hours]
            ahead = [moment for moment in moments if moment > self._shown]
            if not ahead:
                continue
            self._check_night(day)
            if len(ahead) > 1 and self._said["clock"][0] not in _KNOWN_HOURS:
                raise self._ask(Unclear.TWO_HOURS, ahead)
            # A day that comes again, and is today: who means today says so.
            is_weekday = self._said.get("day", ("",))[0] == "weekday"
            if later and day == self._today and (is_weekday or len(ahead) < len(hours)):
                raise self._ask(
                    Unclear.TWO_DAYS, [ahead[0], datetime.combine(later, ahead[0].time())]
                )
            return ahead[0]
        return moments[-1]

    def _choose_next(self, hours: list[timedelta]) -> datetime:
        # An hour without a day is the next such hour of the clock.
        today = datetime.combine(self._today, time())
        moments = sorted(today + day * _DAY + hour for day in range(2) for hour in hours)
        minute = self._shown.replace(second=0, microsecond=0)
        near = [m for m in moments if minute <= m <= self._shown + _HALF_DAY]
        if len(near) > 1:
            raise self._ask(Unclear.TWO_HOURS, near)
        return next(moment for moment in moments if moment > self._shown)

    def _check_night(self, day: date) -> None:
        # Midnight of a day may be its beginning or its end, and so may the hours after it.
        clock = self._said.get("clock", (12,))
        is_deep = self._said.get("part") == "deep" and clock[0] < _FIRST_OF_MORNING
        if is_deep or "midnight" in self._said:
            moment = datetime.combine(day, time(clock[0] % 24))
            raise self._ask(Unclear.TWO_DAYS, [moment, moment + _DAY])

    @staticmethod
    def _ask(reason: Unclear, moments: Sequence[date], form: str = "%Y-%m-%d %H:%M") -> UnclearTime:
        first, second = (format(moment, form) for moment in moments[:2])
        return UnclearTime(reason, first=first, second=second)

    def _list_hours(self) -> list[timedelta]:
        # What the hour can be, from the beginning of its day.
        hour, minute, second, is_exact = self._said.get("clock", (12, 0, 0, True))
        hours = [hour] if is_exact else [hour, hour + 12]
        if part := self._said.get("part"):
            known = PARTS[part]
            hours = [known[hour]] if hour in known else [hour] if hour in known.values() else []
        if not hours:
            raise self._refuse(Unclear.NO_SUCH_DAY)
        return [timedelta(hours=number, minutes=minute, seconds=second) for number in hours]

    def _list_days(self) -> list[date]:
        # The days that can be meant, the nearest first.
        kind, *data = self._said.get("day", ("span",) if "span" in self._said else ("offset", 0))
        today = self._today
        if kind in {"place", "vague"}:
            raise self._refuse(Unclear.NO_DAY)
        if kind == "span":
            return [to_shown(self._shift(), self._zone).date()]
        if kind == "offset":
            return [today + data[0] * _DAY]
        if kind == "weekday":
            ahead, number = data
            distance = number - today.weekday()
            days = [distance % 7, distance % 7 + 7] if ahead is None else [distance + 7 * ahead]
            return [today + day * _DAY for day in days]
        if kind == "of_month":
            ahead, day = data
            first = today.year * 12 + today.month - 1 + (ahead or 0)
            months = range(first, first + (_NEXT_MONTHS if ahead is None else 1))
            found = [_make_day(month // 12, month % 12 + 1, day) for month in months]
        else:
            year, month, day, ahead = data
            first = year or today.year + (ahead or 0)
            is_any = not year and ahead is None
            years = range(first, first + (_LEAP_YEARS if is_any else 1))
            found = [_make_day(year, month, day) for year in years]
        if not (known := [day for day in found if day]):
            raise self._refuse(Unclear.NO_SUCH_DAY)
        return known

    def _find_repeat(self, calendar: WorkCalendar) -> tuple[datetime, str]:
        # The first instant, and the rule.
        parts = {**self._said["every"], **self._list_rule_days()}
        if "except" in self._said:
            parts = self._without_days(parts, self._said["except"])
        if self._said.get("no_holidays"):
            parts = self._without_holidays(parts)
        is_whole = parts["FREQ"] in {*UNITS, "DAILY"} or any(name[:2] == "BY" for name in parts)
        if not is_whole:
            raise self._refuse(Unclear.NO_DAY)
        ends = [f"COUNT={self._count(parts, *self._said['end'])}"] if "end" in self._said else []
        if "until" in self._said:
            ends.append(f"UNTIL={self._read_until():%Y%m%d}")
        rule = check_repeat(";".join([*map("=".join, parts.items()), *ends]))
        start = self._find_start(parts)
        search = start if parts["FREQ"] in UNITS else self._now
        if parts["FREQ"] not in UNITS:
            # The first is the next day that fits; from there on every other one counts.
            parts.pop("INTERVAL", None)
        counted = ";".join([*map("=".join, parts.items()), *ends])
        first = next_due(counted, start, search, self._zone, calendar)
        if first is None:
            raise UnclearTime(Unclear.NEVER, words=rule)
        return first, rule

    def _list_rule_days(self) -> dict[str, str]:
        # What a day says in a rule: ``every month`` and ``the 15th``.
        freq = self._said["every"]["FREQ"]
        match (freq, *self._said.get("day", ())):
            case [_]:
                return {}
            case ["MONTHLY", "of_month", None, day]:
                return {"BYMONTHDAY": str(day)}
            case ["MONTHLY", "place", place, day]:
                return {"BYDAY": f"{place}{DAY_NAMES[day]}"}
            case ["WEEKLY", "weekday", None, day]:
                return {"BYDAY": DAY_NAMES[day]}
            case ["YEARLY", "date", None, month, day, None]:
                return {"BYMONTH": str(month), "BYMONTHDAY": str(day)}
        is_each = freq in {*UNITS, "DAILY"}
        raise self._refuse(Unclear.QUALIFIED if is_each else Unclear.NO_DAY)

    def _count(self, parts: dict[str, str], unit: str, number: int) -> int:
        # So many times, or how many that are in days or weeks. Not every month has a 31st.
        days, is_each = parts.get("BYDAY"), parts.get("INTERVAL", "1") == "1"
        match (parts["FREQ"] if is_each else "", unit):
            case (_, ""):
                return number
            case ("DAILY", "DAILY"):
                return number
            case ("DAILY", "WEEKLY") if not days:
                return number * 7
            case ("WEEKLY", "WEEKLY") if days:
                return number * len(days.split(","))
        raise self._refuse(Unclear.QUALIFIED)

    def _without_days(self, parts: dict[str, str], days: set[int]) -> dict[str, str]:
        # Every day but some of the week; of working days only a calendar can say that.
        freq, named = parts["FREQ"], parts.get("BYDAY")
        is_plain = freq in UNITS or (freq == "DAILY" and parts.get("INTERVAL", "1") == "1")
        if not (freq == "WEEKLY" if named else is_plain):
            raise self._refuse(Unclear.QUALIFIED)
        known = named.split(",") if named else DAY_NAMES
        if not (left := [name for name in known if DAY_NAMES.index(name) not in days]):
            raise self._refuse(Unclear.NEVER)
        freq = freq if freq in UNITS else "WEEKLY"
        return {**parts, "FREQ": freq, "BYDAY": ",".join(left)}

    def _without_holidays(self, parts: dict[str, str]) -> dict[str, str]:
        # In Chinese every day but those is a working day; in English only of Monday to Friday.
        is_each = parts.get("INTERVAL", "1") == "1"
        days = parts.get("BYDAY", "" if self._words.isascii() else _MONDAY_TO_FRIDAY)
        if parts["FREQ"] not in {"DAILY", "WEEKLY"} or not is_each or days != _MONDAY_TO_FRIDAY:
            raise self._refuse(Unclear.HOLIDAYS)
        return {"FREQ": "DAILY", "BYDAY": days}

    def _find_start(self, parts: dict[str, str]) -> datetime:
        # The instant that the rule counts from: its hour, today; of hours and minutes, now.
        has_hour = "clock" in self._said or self._said.get("part") == "noon"
        if parts["FREQ"] in UNITS:
            if has_hour or "part" in self._said:
                raise self._refuse(Unclear.NO_TIME)
            return self._now + timedelta(microseconds=-self._now.microsecond % 1_000_000)
        if not has_hour:
            raise self._refuse(Unclear.NO_HOUR)
        today = datetime.combine(self._today, time())
        hours = self._list_hours()
        if len(hours) > 1 and self._said["clock"][0] not in _KNOWN_HOURS:
            raise self._ask(Unclear.TWO_HOURS, [today + hour for hour in hours], "%H:%M")
        if hours[0] >= _DAY and parts.keys() & {"BYDAY", "BYMONTHDAY"}:
            raise self._ask(Unclear.TWO_DAYS, [today, today + _DAY])
        return to_instant(today + hours[0] % _DAY, self._zone)

    def _read_until(self) -> date:
        kind, *data = self._said["until"]
        meaning = Meaning({"day": (kind, *data)}, self._words, self._now, self._zone)
        days = [day for day in meaning._list_days() if day >= self._today]
        if not days:
            raise UnclearTime(Unclear.PAST, due=self._words)
        if kind == "weekday" and days[0] == self._today and len(days) > 1:
            raise self._ask(Unclear.TWO_DAYS, days, "%Y-%m-%d")
        return days[0]


def _make_day(year: int, month: int, day: int) -> date | None:
    # None where there is no such day; -1 is the last of the month.
    if not (MINYEAR < year < MAXYEAR and 1 <= month <= 12):
        return None
    length = monthrange(year, month)[1]
    return date(year, month, day if day > 0 else length) if -1 <= day <= length and day else None
