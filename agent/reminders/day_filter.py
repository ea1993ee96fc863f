"""Which days a rule is for. Pure."""

from calendar import isleap, monthrange
from datetime import date

from agent.reminders.rules import Rule
from agent.reminders.workdays import WorkCalendar

_NEVER = 10_000  # longer than what can be counted from its end
_LAST_WEEK = 28  # of December: always in the last week of its year


class DayFilter:
    """The days that fit ``rule``; what the rule does not say of them is as on its first day."""

    def __init__(self, rule: Rule, first: date, calendar: WorkCalendar) -> None:
        self._rule, self._by, self._calendar = rule, dict(rule.by), calendar
        self._weekdays = set(rule.weekdays)
        says_day = bool(rule.weekdays) or bool({"BYMONTHDAY", "BYYEARDAY"} & rule.by.keys())
        if says_day:
            return
        if rule.freq == "WEEKLY" or (rule.freq == "YEARLY" and "BYWEEKNO" in rule.by):
            self._weekdays = {(0, first.weekday())}
        elif rule.freq in {"MONTHLY", "YEARLY"}:
            self._by["BYMONTHDAY"] = (first.day,)
            if rule.freq == "YEARLY":
                self._by.setdefault("BYMONTH", (first.month,))

    def fits(self, day: date) -> bool:
        """Whether ``day`` is one of the rule's, as far as each day can be told alone."""
        if self._rule.is_working_days and not self._by:
            return self._calendar.is_working(day)
        return (
            self._has("BYMONTH", day.month)
            and (not self._weekdays or self._fits_weekday(day))
            and self._fits_month(day)
            and self._fits_year(day)
        )

    def _has(self, part: str, number: int, length: int = _NEVER) -> bool:
        """``length``: how many there are, where a part may count from the last."""
        numbers = self._by.get(part)
        return numbers is None or number in numbers or (number - length - 1 in numbers)

    def _fits_month(self, day: date) -> bool:
        if "BYMONTHDAY" not in self._by:
            return True
        return self._has("BYMONTHDAY", day.day, monthrange(day.year, day.month)[1])

    def _fits_year(self, day: date) -> bool:
        if "BYYEARDAY" in self._by:
            return self._has("BYYEARDAY", day.timetuple().tm_yday, 365 + isleap(day.year))
        if "BYWEEKNO" in self._by:
            year, week, _ = day.isocalendar()
            return self._has("BYWEEKNO", week, date(year, 12, _LAST_WEEK).isocalendar().week)
        return True

    def _fits_weekday(self, day: date) -> bool:
        weekday = day.weekday()
        places = {which for which, number in self._weekdays if number == weekday}
        if not places or 0 in places:
            return bool(places)
        if self._rule.freq == "MONTHLY" or "BYMONTH" in self._by:
            number, length = day.day, monthrange(day.year, day.month)[1]
        else:
            number, length = day.timetuple().tm_yday, 365 + isleap(day.year)
        return not places.isdisjoint(((number - 1) // 7 + 1, -((length - number) // 7) - 1))
