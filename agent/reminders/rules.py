"""A rule of a repeat, taken apart (RFC 5545, section 3.3.10). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from agent.reminders.unclear import Unclear, UnclearTime

MOST_RULE_CHARS = 500
#: Seconds of the units that are less than a day.
UNITS = {"SECONDLY": 1, "MINUTELY": 60, "HOURLY": 3600}
FREQUENCIES = (*UNITS, "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
DAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WORKING = tuple((0, day) for day in range(5))
#: The least and the greatest value of each part; those whose least is negative have no 0.
_RANGES = {
    "INTERVAL": (1, 10**8),
    "BYMONTH": (1, 12),
    "BYWEEKNO": (-53, 53),
    "BYYEARDAY": (-366, 366),
    "BYMONTHDAY": (-31, 31),
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYSECOND": (0, 59),
    "BYSETPOS": (-366, 366),
    "COUNT": (1, 10**8),
}
_ORDER = ("FREQ", "INTERVAL", *list(_RANGES)[1:6], "BYDAY", *list(_RANGES)[5:], "UNTIL", "WKST")
_DEFAULTS = {("INTERVAL", "1"), ("WKST", "MO")}
_POSITION = {"BYSETPOS"}
_MOST_WEEKS = 53
_END = re.compile(r"\d{8}(?:T\d{6}Z?)?")
_DAY = re.compile(rf"([+-]?\d\d?)?({'|'.join(DAY_NAMES)})")
_NUMBER = re.compile(r"[+-]?\d{1,9}")
#: Parts that RFC 5545 allows with these frequencies only. What nobody needs, and would be much to
#: look through, is left out: positions within less than a day, hours of a rule of seconds.
_ONLY_WITH = {
    "BYWEEKNO": {"YEARLY"},
    "BYYEARDAY": {"YEARLY", *UNITS},
    "BYMONTHDAY": set(FREQUENCIES) - {"WEEKLY"},
    "BYSETPOS": set(FREQUENCIES) - set(UNITS),
    **dict.fromkeys(("BYHOUR", "BYMINUTE", "BYSECOND"), set(FREQUENCIES[1:])),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """``by`` has the numbers of each part by its name, sorted; ``weekdays`` are pairs of "which of
    its month or year" (0: every) and a day from 0, Monday. ``until`` is a day, or what the clock
    shows, or an instant in UTC."""

    freq: str
    interval: int
    count: int
    until: date | datetime | None
    by: Mapping[str, tuple[int, ...]]
    weekdays: tuple[tuple[int, int], ...]
    week_start: int
    text: str

    @property
    def is_working_days(self) -> bool:
        """Whether it is for working days, as a calendar says."""
        return self.freq == "DAILY" and self.weekdays == _WORKING


@lru_cache(maxsize=512)
def parse_rule(text: str) -> Rule:
    """Raises :class:`agent.reminders.unclear.UnclearTime`; the text of the rule is normalised."""
    parts = _split(text)
    freq = parts["FREQ"]
    numbers = {name: _parse_numbers(name, parts[name]) for name in _RANGES if name in parts}
    weekdays = _parse_weekdays(freq, parts)
    parts |= {name: ",".join(map(str, values)) for name, values in numbers.items()}
    if weekdays:
        parts["BYDAY"] = ",".join(f"{which or ''}{DAY_NAMES[day]}" for which, day in weekdays)
    return Rule(
        freq=freq,
        interval=numbers.pop("INTERVAL", (1,))[0],
        count=numbers.pop("COUNT", (0,))[0],
        until=_parse_until(parts["UNTIL"]) if "UNTIL" in parts else None,
        by=numbers,
        weekdays=weekdays,
        week_start=_parse_week_start(parts.get("WKST", "MO")),
        text=";".join(
            f"{name}={parts[name]}"
            for name in _ORDER
            if name in parts and (name, parts[name]) not in _DEFAULTS
        ),
    )


def _split(text: str) -> dict[str, str]:
    """The parts by their names, each once, known and allowed together."""
    if len(text) > MOST_RULE_CHARS:
        raise UnclearTime(Unclear.TOO_LONG, most=MOST_RULE_CHARS)
    words = text.strip().upper().removeprefix("RRULE:").rstrip(";")
    parts: dict[str, str] = {}
    for part in words.split(";"):
        name, equals, value = part.partition("=")
        if equals and name not in _ORDER:
            raise UnclearTime(Unclear.RULE_PART, words=part[:60])
        if not equals or name in parts:
            raise UnclearTime(Unclear.RULE, words=words[:60])
        parts[name] = value
    freq = parts.get("FREQ", "")
    if freq not in FREQUENCIES or {"COUNT", "UNTIL"} <= parts.keys():
        raise UnclearTime(Unclear.RULE, words=words[:60])
    for name, allowed in _ONLY_WITH.items():
        if name in parts and freq not in allowed:
            raise UnclearTime(Unclear.RULE_PART, words=f"FREQ={freq};{name}")
    if "BYSETPOS" in parts and not any(name.startswith("BY") for name in parts.keys() - _POSITION):
        raise UnclearTime(Unclear.RULE, words=words[:60])
    return parts


def _parse_numbers(name: str, value: str) -> tuple[int, ...]:
    least, most = _RANGES[name]
    words = value.split(",")
    numbers = {int(word) for word in words if _NUMBER.fullmatch(word)}
    is_whole = all(map(_NUMBER.fullmatch, words)) and (name.startswith("BY") or len(words) == 1)
    if not is_whole or not all(least <= n <= most and (n or not least) for n in numbers):
        raise UnclearTime(Unclear.RULE_PART, words=f"{name}={value}"[:60])
    return tuple(sorted(numbers))


def _parse_weekdays(freq: str, parts: dict[str, str]) -> tuple[tuple[int, int], ...]:
    if "BYDAY" not in parts:
        return ()
    days = [_DAY.fullmatch(word) for word in parts["BYDAY"].split(",")]
    pairs = {(int(day[1] or 0), DAY_NAMES.index(day[2])) for day in days if day}
    has_numbers = any(which for which, _ in pairs)
    may_have = freq == "MONTHLY" or (freq == "YEARLY" and "BYWEEKNO" not in parts)
    is_known = all(days) and all(abs(which) <= _MOST_WEEKS for which, _ in pairs)
    if not is_known or (has_numbers and not may_have):
        raise UnclearTime(Unclear.RULE_PART, words=f"BYDAY={parts['BYDAY']}"[:60])
    return tuple(sorted(pairs))


def _parse_until(value: str) -> date | datetime:
    try:
        if not _END.fullmatch(value):
            raise ValueError(value)
        return date.fromisoformat(value) if "T" not in value else datetime.fromisoformat(value)
    except ValueError as error:
        raise UnclearTime(Unclear.RULE_PART, words=f"UNTIL={value}"[:60]) from error


def _parse_week_start(value: str) -> int:
    if value not in DAY_NAMES:
        raise UnclearTime(Unclear.RULE_PART, words=f"WKST={value}"[:60])
    return DAY_NAMES.index(value)
