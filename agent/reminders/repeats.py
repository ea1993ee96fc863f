"""Rules of repeats: the recurrence rules of RFC 5545 (section 3.3.10). Pure.

A rule is text without ``RRULE:``, and counts in the wall-clock time of its zone: an instant that
does not exist there becomes the next that does, one that comes twice counts once. A rule for each
day of Monday to Friday (``FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR``) means working days, as a calendar of
holidays says; the same with ``FREQ=WEEKLY`` means what it says. Looking for the next instant costs
what a day of the rule costs, however many there are.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from agent.reminders.workdays import WorkCalendar


def check_repeat(rule: str) -> str:
    """``rule``, normalised. Raises :class:`agent.reminders.unclear.UnclearTime` for what is no rule
    or cannot be had: parts that RFC 5545 does not know, more often than every ten seconds."""
    return rule.strip().removeprefix("RRULE:").upper()


def next_due(
    rule: str, first: datetime, after: datetime, zone: ZoneInfo, calendar: WorkCalendar
) -> datetime | None:
    """The first instant of ``rule`` after ``after``, in UTC; None where there is none within
    :data:`agent.reminders.when.MOST_YEARS`. ``first`` is the instant that the rule counts from, as
    ``DTSTART``; it is one of the rule's only where the rule says so."""
    raise NotImplementedError


def count_missed(
    rule: str,
    first: datetime,
    after: datetime,
    until: datetime,
    zone: ZoneInfo,
    calendar: WorkCalendar,
) -> int:
    """How many instants of ``rule`` are after ``after`` and not after ``until``."""
    raise NotImplementedError


def least_gap(rule: str, first: datetime, zone: ZoneInfo) -> timedelta:
    """The time between two instants of ``rule``, at least: never more than it really is, but for
    changes of the clock. A rule of one instant a day has a day."""
    raise NotImplementedError


def say_repeat(rule: str) -> str:
    """``rule`` in the language that is active, without the hour where the rule has none; a rule
    that is too much for a sentence stays as it is."""
    return rule
