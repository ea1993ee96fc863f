"""What a clock on the wall shows, as an instant: also where the clock is changed. Pure."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_SECOND = timedelta(seconds=1)


def to_instant(shown: datetime, zone: ZoneInfo) -> datetime:
    """The instant, in UTC, at which clocks of ``zone`` show ``shown`` (naive): of two the first; of
    none, because the clock is put forward, the next instant that there is."""
    late = shown.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if to_shown(late, zone) == shown:
        return late
    # It is left out between these two: the offset before the change makes it late, that after
    # the change early.
    early = shown.replace(tzinfo=zone, fold=1).astimezone(UTC)
    offset = late.astimezone(zone).utcoffset()
    while late - early > _SECOND:
        middle = early + (late - early) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            late = middle
        else:
            early = middle
    return late


def to_shown(instant: datetime, zone: ZoneInfo) -> datetime:
    """What clocks of ``zone`` show at ``instant`` (aware), naive."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)
