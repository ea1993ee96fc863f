"""A rule of a repeat as words for people. Pure."""

from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext as _, gettext_lazy, pgettext, pgettext_lazy

from agent.reminders.rules import Rule, parse_rule

_EVERY = {
    "SECONDLY": (gettext_lazy("every second"), gettext_lazy("every {number} seconds")),
    "MINUTELY": (gettext_lazy("every minute"), gettext_lazy("every {number} minutes")),
    "HOURLY": (gettext_lazy("every hour"), gettext_lazy("every {number} hours")),
    "DAILY": (gettext_lazy("every day"), gettext_lazy("every {number} days")),
    "WEEKLY": (gettext_lazy("every week"), gettext_lazy("every {number} weeks")),
    "MONTHLY": (gettext_lazy("every month"), gettext_lazy("every {number} months")),
    "YEARLY": (gettext_lazy("every year"), gettext_lazy("every {number} years")),
}
_DAYS = (
    pgettext_lazy("repeat", "Monday"),
    pgettext_lazy("repeat", "Tuesday"),
    pgettext_lazy("repeat", "Wednesday"),
    pgettext_lazy("repeat", "Thursday"),
    pgettext_lazy("repeat", "Friday"),
    pgettext_lazy("repeat", "Saturday"),
    pgettext_lazy("repeat", "Sunday"),
)
_PLACES = {
    0: "{day}",
    1: gettext_lazy("the first {day}"),
    2: gettext_lazy("the second {day}"),
    3: gettext_lazy("the third {day}"),
    4: gettext_lazy("the fourth {day}"),
    -1: gettext_lazy("the last {day}"),
}
#: The parts of rules that have a sentence.
_SIMPLE = ("", "BYDAY", "BYMONTHDAY", "BYMONTH BYMONTHDAY")


def say_repeat(rule: str) -> str:
    """``rule`` in the language that is active, without its hours; one that is too much for a
    sentence stays as it is."""
    parsed = parse_rule(rule)
    names = list(_name_days(parsed))
    if None in names or " ".join(sorted(parsed.by)) not in _SIMPLE:
        return parsed.text
    every = str(_EVERY[parsed.freq][parsed.interval > 1]).format(number=parsed.interval)
    days = pgettext("repeat", ", ").join(filter(None, names))
    if parsed.is_working_days and parsed.interval == 1:
        said = _("every working day")
    elif parsed.freq == "WEEKLY" and days and parsed.interval == 1:
        said = _("every {days}").format(days=days)
    else:
        said = _("{every} on {days}").format(every=every, days=days) if days else every
    if parsed.count:
        said += _(", {number} times").format(number=parsed.count)
    if parsed.until:
        shown = "%Y-%m-%d %H:%M" if isinstance(parsed.until, datetime) else "%Y-%m-%d"
        said += _(", until {day}").format(day=format(parsed.until, shown))
    return said


def _name_days(rule: Rule) -> Iterator[str | None]:
    # The days of ``rule``; None for one that has no short name.
    for place, day in rule.by.get("BYDAY", ()):
        yield str(_PLACES[place]).format(day=_DAYS[day]) if place in _PLACES else None
    months = rule.by.get("BYMONTH", ())
    if months and (rule.freq != "YEARLY" or len(months) > 1):
        yield None
    for number in rule.by.get("BYMONTHDAY", ()):
        if number < -1:
            yield None
        elif months:
            yield f"{months[0]:02}-{number:02}"
        else:
            yield _("the last day") if number < 0 else _("day {number}").format(number=number)
