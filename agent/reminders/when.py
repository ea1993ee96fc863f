"""When something is to be: a date and time, a duration from now, or words in Chinese or English.
Pure.

What is not sure is not guessed: :class:`agent.reminders.unclear.UnclearTime` says what to ask.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agent.reminders.unclear import Unclear, UnclearTime
from agent.reminders.workdays import WorkCalendar

MOST_YEARS = 10
_SHORT = re.compile(r"(\d{1,9}) ?(s|m|h|d|秒|分钟|小时|天)后?")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "秒": 1, "分钟": 60, "小时": 3600, "天": 86400}
_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.I)


@dataclass(frozen=True, slots=True)
class When:
    """``due_at`` is aware, in UTC, and in the future; with ``repeat``, a rule of
    :mod:`agent.reminders.repeats`, it is the first instant of the rule. ``day_taken``: the words
    name an hour without a day, and this day was taken; who said them is told which."""

    due_at: datetime
    repeat: str = ""
    day_taken: bool = False


def read_when(
    words: str, now: datetime, zone: ZoneInfo, calendar: WorkCalendar | None = None
) -> When:
    """What ``words`` as a whole mean at ``now`` (aware) in ``zone``; working days are those of
    ``calendar``, without one of the calendar that is shipped. Raises
    :class:`agent.reminders.unclear.UnclearTime`. Takes time linear in the words."""
    when, rest = split_when(words, now, zone, calendar)
    if rest:
        raise UnclearTime(Unclear.NO_TIME, words=words[:60])
    return when


def split_when(
    words: str, now: datetime, zone: ZoneInfo, calendar: WorkCalendar | None = None
) -> tuple[When, str]:
    """The longest beginning of ``words`` that is a time, and the rest without punctuation and
    blanks around it. Raises as :func:`read_when`, also where the beginning is a time that is not
    sure."""
    head, _, rest = words.strip().partition(" ")
    if found := _SHORT.fullmatch(head):
        due = now + timedelta(seconds=int(found[1]) * _UNITS[found[2]])
    elif (found := _ISO.fullmatch(head)) and any(found.groups()):
        w, d, h, m, s = (int(part or 0) for part in found.groups())
        due = now + timedelta(weeks=w, days=d, hours=h, minutes=m, seconds=s)
    else:
        try:
            due = datetime.fromisoformat(head)
        except ValueError as error:
            raise UnclearTime(Unclear.NO_TIME, words=words[:60]) from error
        due = due if due.tzinfo else due.replace(tzinfo=zone)
    if due <= now:
        raise UnclearTime(Unclear.PAST, due=head)
    return When(due.astimezone(UTC)), rest.strip(" ,，。:：")
