"""The time zone of the installation, and the days that are counted in it.

One row says which zone that is. The database thread reads it with the other settings and has it
count in the whole process, as Django's default zone; a page reads it for itself, since it may be of
another process.
"""

import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache

from django.conf import settings
from django.utils import timezone


@cache
def known_zones() -> frozenset[str]:
    """The IANA names that this machine knows."""
    return frozenset(zoneinfo.available_timezones() - {"localtime", "Factory"})


@dataclass(frozen=True, slots=True)
class Clock:
    """A time zone by its IANA name ("" for the machine's), and the day on which it was chosen.

    A day that has begun is never begun again: ``changed_on`` is the day of the change, and no
    earlier one follows it. What is bounded by the day is counted from ``begun_on`` on that day,
    since part of it was counted for the day before.
    """

    zone: str = ""
    changed_on: str = ""
    begun_on: str = ""

    @property
    def name(self) -> str:
        """The zone that counts; the machine's also where this machine does not know the other."""
        is_known = bool(self.zone) and self.zone in known_zones()
        return self.zone if is_known else settings.MACHINE_TIME_ZONE

    @property
    def is_chosen(self) -> bool:
        """Whether somebody chose the zone that counts."""
        return self.name == self.zone

    def day_at(self, moment: datetime) -> str:
        """The day that ``moment``, which is not before the change, is counted for."""
        day = timezone.localtime(moment, zoneinfo.ZoneInfo(self.name)).date().isoformat()
        return max(day, self.changed_on)

    def first_of(self, day: str) -> str:
        """The day from which on is counted what is bounded on ``day``."""
        return self.begun_on if day == self.changed_on else day

    def move_to(self, zone: str, now: datetime) -> "Clock":
        """The clock after ``zone`` was chosen."""
        day = self.day_at(now)
        return Clock(zone, max(day, Clock(zone).day_at(now)), self.first_of(day))


class _Process:
    """What counts in this process."""

    clock = Clock()


_of_page: ContextVar[Clock | None] = ContextVar("clock of a page", default=None)


def present_clock() -> Clock:
    """The clock that counts: the page's, else the process's. No I/O."""
    return _of_page.get() or _Process.clock


def chosen_zone() -> str:
    """The name of the zone that counts, "" where it is the machine's."""
    clock = present_clock()
    return clock.zone if clock.zone and clock.is_chosen else ""


def set_clock(clock: Clock) -> None:
    """Have ``clock`` count in all threads and tasks of this process. Pages keep theirs."""
    if clock != _Process.clock:
        _Process.clock = clock
        settings.TIME_ZONE = clock.name
        timezone.get_default_timezone.cache_clear()  # type: ignore[attr-defined]


@contextmanager
def page_clock(clock: Clock) -> Iterator[None]:
    """Have ``clock`` count for what is done within."""
    token = _of_page.set(clock)
    try:
        with timezone.override(clock.name):
            yield
    finally:
        _of_page.reset(token)


def find_zone(own: str = "") -> zoneinfo.ZoneInfo:
    """The zone of a chat or of a message: its ``own`` where it has one, else the installation's."""
    is_known = bool(own) and own in known_zones()
    # Its name, which str() gives: Django's own name of a zone without summer time is no zone's.
    return zoneinfo.ZoneInfo(own if is_known else str(timezone.get_current_timezone()))


def current_day() -> str:
    """The day that what happens now is counted for, such as ``2026-01-31``."""
    return _minute_of(_of_page.get() or _Process.clock, int(timezone.now().timestamp()) // 60)[0]


def begin_of_tomorrow() -> datetime:
    """The next midnight of the time zone that counts."""
    tomorrow = timezone.localdate() + timedelta(days=1)
    return timezone.make_aware(datetime.combine(tomorrow, time.min))


def today() -> date:
    """:func:`current_day` as a date."""
    return date.fromisoformat(current_day())


def counted_day(moment: datetime) -> str:
    """The day that something is counted for which happens at ``moment``."""
    return counted_hour(moment)[0]


def counted_hour(moment: datetime) -> tuple[str, int]:
    """The day and the hour that something is counted for which happens at ``moment``."""
    return _minute_of(_of_page.get() or _Process.clock, int(moment.timestamp()) // 60)


def counted_since(hours: int) -> tuple[str, int]:
    """The day and the hour that was counted for so many ``hours`` ago."""
    minute = int(timezone.now().timestamp()) // 60 - 60 * hours
    return _minute_of(_of_page.get() or _Process.clock, minute)


@lru_cache(maxsize=8)
def _minute_of(clock: Clock, minute: int) -> tuple[str, int]:
    """Days and hours begin with a minute in every time zone; to find them takes long."""
    moment = datetime.fromtimestamp(minute * 60, UTC)
    return clock.day_at(moment), timezone.localtime(moment, zoneinfo.ZoneInfo(clock.name)).hour


def first_of_day(day: str) -> str:
    """As :meth:`Clock.first_of` of the clock that counts."""
    clock = _of_page.get() or _Process.clock
    return clock.begun_on if day == clock.changed_on else day
