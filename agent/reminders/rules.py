"""A rule of a repeat, taken apart (RFC 5545, section 3.3.10). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from agent.reminders.unclear import Unclear, UnclearTime

#: Seconds of the units that are less than a day.
UNITS = {"SECONDLY": 1, "MINUTELY": 60, "HOURLY": 3600}
DAYS = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
DAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
WORKING_DAYS = tuple((0, day) for day in range(5))
_MOST_CHARS = 500
_WEEKDAYS = {
    f"{which or ''}{name}": (which, day)
    for which in range(-53, 54)
    for day, name in enumerate(DAY_NAMES)
}


def _numbers(least: int, most: int) -> dict[str, int]:
    # What a part can have, as it is written; those that count from the last have no 0.
    return {str(number): number for number in range(least, most + 1) if number or not least}


#: What each part can have, in the order in which they are written; UNTIL and the two numbers
#: without an end are looked at by themselves.
_PARTS: dict[str, Mapping[str, Any]] = {
    "FREQ": dict.fromkeys((*UNITS, *DAYS)),
    "INTERVAL": {},
    "BYMONTH": _numbers(1, 12),
    "BYWEEKNO": _numbers(-53, 53),
    "BYYEARDAY": _numbers(-366, 366),
    "BYMONTHDAY": _numbers(-31, 31),
    "BYDAY": _WEEKDAYS,
    "BYHOUR": _numbers(0, 23),
    "BYMINUTE": _numbers(0, 59),
    "BYSECOND": _numbers(0, 59),
    "BYSETPOS": _numbers(-366, 366),
    "COUNT": {},
    "UNTIL": {},
    "WKST": dict.fromkeys(DAY_NAMES),
}
#: Parts that RFC 5545 allows with these frequencies only. What nobody needs, and would be much to
#: look through, is left out: positions within less than a day, times of a rule of seconds.
_ONLY_WITH = {
    "BYWEEKNO": {"YEARLY"},
    "BYYEARDAY": {"YEARLY", *UNITS},
    "BYMONTHDAY": {*UNITS, *DAYS} - {"WEEKLY"},
    "BYSETPOS": set(DAYS),
    "BYHOUR": {*UNITS, *DAYS} - {"SECONDLY"},
    "BYMINUTE": {*UNITS, *DAYS} - {"SECONDLY"},
    "BYSECOND": {*UNITS, *DAYS} - {"SECONDLY"},
}
_BY = {name for name in _PARTS if name.startswith("BY")}
_DEFAULTS = {"INTERVAL=1", "WKST=MO"}
_ZEROS = re.compile(r"(?<![\dT])(?:\+0*|0+(?=\d))")
_COUNT = re.compile(r"[1-9]\d{0,7}")
_UNTIL = re.compile(r"\d{8}(?:T\d{6}Z?)?")


@dataclass(frozen=True, slots=True)
class Rule:
    """``by`` has what each part names, sorted: numbers, and of BYDAY pairs of "which of its month
    or year" (0: every) and a day from 0, Monday. ``until`` is a day, or what the clock shows, or an
    instant in UTC; ``count`` is 0 without an end. ``text`` is the rule, normalised."""

    freq: str
    interval: int
    count: int
    until: date | datetime | None
    by: Mapping[str, tuple[Any, ...]]
    week_start: int
    text: str

    @property
    def is_working_days(self) -> bool:
        """Whether it is for working days, as a calendar says."""
        return self.freq == "DAILY" and self.by.get("BYDAY") == WORKING_DAYS


@lru_cache(maxsize=512)
def parse_rule(text: str) -> Rule:
    """Raises :class:`agent.reminders.unclear.UnclearTime`."""
    parts = _split(text)
    until = parts.get("UNTIL", "")
    try:
        end = datetime.fromisoformat(until) if until else None
    except ValueError as error:
        raise UnclearTime(Unclear.RULE_PART, words=f"UNTIL={until}"[:60]) from error
    by: dict[str, tuple[Any, ...]] = {}
    for name in parts.keys() & _BY:
        by[name] = tuple(sorted({_PARTS[name][item] for item in parts[name].split(",")}))
        parts[name] = ",".join(word for word, value in _PARTS[name].items() if value in by[name])
    written = (f"{name}={parts[name]}" for name in _PARTS if name in parts)
    return Rule(
        freq=parts["FREQ"],
        interval=int(parts.get("INTERVAL", 1)),
        count=int(parts.get("COUNT", 0)),
        until=end.date() if end and "T" not in until else end,
        by=by,
        week_start=DAY_NAMES.index(parts.get("WKST", "MO")),
        text=";".join(part for part in written if part not in _DEFAULTS),
    )


def _split(text: str) -> dict[str, str]:
    # The parts by their names, each known, whole, once, and allowed together.
    if len(text) > _MOST_CHARS:
        raise UnclearTime(Unclear.TOO_LONG, most=_MOST_CHARS)
    words = text.strip().upper().removeprefix("RRULE:").rstrip(";")
    pairs = [part.partition("=")[::2] for part in words.split(";")]
    parts = {name: _ZEROS.sub("", value) for name, value in pairs}
    freq = parts.get("FREQ", "")
    if len(parts) < len(pairs) or freq not in _PARTS["FREQ"] or {"COUNT", "UNTIL"} <= parts.keys():
        raise UnclearTime(Unclear.RULE, words=words[:60])
    for name, value in parts.items():
        if not _is_allowed(name, value, parts):
            raise UnclearTime(Unclear.RULE_PART, words=f"FREQ={freq};{name}={value}"[:60])
    return parts


def _is_allowed(name: str, value: str, parts: Mapping[str, str]) -> bool:
    if name == "UNTIL":
        return bool(_UNTIL.fullmatch(value))
    if name in {"INTERVAL", "COUNT"}:
        return bool(_COUNT.fullmatch(value))
    freq = parts["FREQ"]
    if name == "BYDAY" and (freq not in {"MONTHLY", "YEARLY"} or "BYWEEKNO" in parts):
        return set(value.split(",")) <= set(DAY_NAMES)
    if name == "BYSETPOS" and not _BY - {name} & parts.keys():
        return False
    items = value.split(",") if name in _BY else [value]
    return (
        name in _PARTS
        and set(items) <= _PARTS[name].keys()
        and freq in _ONLY_WITH.get(name, {freq})
    )
