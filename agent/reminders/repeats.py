"""Rules of repeats: the recurrence rules of RFC 5545 (section 3.3.10). Pure.

A rule is text without ``RRULE:``, and counts in the wall-clock time of its zone: an instant that
does not exist there becomes the next that does, one that comes twice counts once. A rule for each
day of Monday to Friday (``FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR``) means working days, as a calendar of
holidays says; the same with ``FREQ=WEEKLY`` means what it says. Looking for the next instant costs
what a day of the rule costs, however many there are.
"""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from agent.reminders.moments import RuleMoments, find_least_gap, list_times
from agent.reminders.rules import DAYS, parse_rule
from agent.reminders.spoken import say_repeat
from agent.reminders.unclear import Unclear, UnclearTime
from agent.reminders.wall_clock import to_shown
from agent.reminders.workdays import WorkCalendar

__all__ = ["check_repeat", "count_missed", "least_gap", "next_due", "say_repeat"]
#: Seconds between two instants of any rule, whoever sets it.
LEAST_SECONDS = 10
#: Times of one day that a rule of days may name: a year of them is made at once.
_MOST_TIMES = 288
_ANCHOR = datetime.combine(date(2001, 1, 1), time())


def check_repeat(rule: str) -> str:
    """``rule``, normalised. Raises :class:`agent.reminders.unclear.UnclearTime` for what is no rule
    or cannot be had: parts that RFC 5545 does not know, more often than every ten seconds."""
    parsed = parse_rule(rule)
    if parsed.freq in DAYS and len(list_times(parsed, _ANCHOR)) > _MOST_TIMES:
        raise UnclearTime(Unclear.RULE_PART, words=parsed.text[:60])
    if find_least_gap(parsed, _ANCHOR) < LEAST_SECONDS:
        raise UnclearTime(Unclear.TOO_OFTEN, seconds=LEAST_SECONDS)
    return parsed.text


def next_due(
    rule: str, first: datetime, after: datetime, zone: ZoneInfo, calendar: WorkCalendar
) -> datetime | None:
    """The first instant of ``rule`` after ``after``, in UTC; None where there is none within ten
    years. ``first`` is the instant that the rule counts from, as ``DTSTART``; it is one of the
    rule's only where the rule says so, which ``after`` one second before it finds out."""
    return RuleMoments(parse_rule(rule), first, zone, calendar).find_next(after)


def count_missed(
    rule: str,
    first: datetime,
    after: datetime,
    until: datetime,
    zone: ZoneInfo,
    calendar: WorkCalendar,
) -> int:
    """How many instants of ``rule`` are after ``after`` and not after ``until``, as the clock shows
    them."""
    moments = RuleMoments(parse_rule(rule), first, zone, calendar)
    return max(0, moments.count_to(until) - moments.count_to(after))


def least_gap(rule: str, first: datetime, zone: ZoneInfo) -> timedelta:
    """The time between two instants of ``rule``, at least: never more than it really is, but for
    changes of the clock. A rule of one instant a day has a day."""
    return timedelta(seconds=find_least_gap(parse_rule(rule), to_shown(first, zone)))
