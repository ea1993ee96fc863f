"""Sums of hours and days that are over, for pages: each process asks for them once, and again after
one of them was changed (:attr:`~tools.live_rows.LiveKind.PAST_SUMS`)."""

import itertools
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import itemgetter, or_
from typing import TYPE_CHECKING, Any

from django.db.models import Q, Sum

from agent.models import ActivitySum
from agent.models.activity import WHOLE_DAY
from tools.local_time import Clock, counted_since, present_clock

if TYPE_CHECKING:
    from django.db.models import QuerySet

Hour = tuple[str, int]
"""A day and one of its hours, or :data:`~agent.models.activity.WHOLE_DAY`."""
#: Hours that are asked for anew though they are over: longer than the one in which they are still
#: added to without a word, for what is written is committed later.
OPEN_HOURS = 2


class PastSums:
    """What is remembered of them, ``most`` answers at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: tuple[tuple[int, Clock] | None, dict[Any, Any]] = (None, {})

    def as_of(self, version: int) -> dict[Any, Any]:
        """The answers of ``version``, to be added to: it is asked for before what is added is."""
        state, (known_of, known) = (version, present_clock()), self._known
        if state != known_of or len(known) > self._most:
            known = {}
            self._known = (state, known)
        return known

    def forget(self) -> None:
        """As after the start."""
        self._known = (None, {})


#: Sums of hours and days, by themselves and by their columns; of whom most was spent on, by kind,
#: days and measure.
of_activity, of_spending = PastSums(1_000), PastSums(12)


def open_day() -> str:
    """The first day that is not over."""
    return counted_since(OPEN_HOURS)[0]


def sum_hours(
    rows: "QuerySet[ActivitySum]",
    hours: Iterable[Hour],
    names: tuple[str, ...],
    known: dict[Any, Any],
) -> Mapping[Hour, Mapping[str, int]]:
    """The sums of ``rows`` in each of ``hours`` where there are any. What ``known`` says is not
    asked for; what is over is added to it. One query."""
    open_since, asked = counted_since(OPEN_HOURS), list(hours)
    missing = [one for one in asked if (one, names) not in known]
    by_day: dict[tuple[int, ...], list[str]] = {}  # days of which the same hours are asked for
    for day, some in itertools.groupby(missing, key=itemgetter(0)):
        by_day.setdefault(tuple(hour for _, hour in some), []).append(day)
    wanted = (Q(day__in=days, hour__in=some) for some, days in by_day.items())
    sums: Any = rows.filter(reduce(or_, wanted, Q(pk__in=()))).values("day", "hour")
    sums = sums.annotate(**{name: Sum(name) for name in names})
    found = {(row["day"], row["hour"]): row for row in sums}
    for day, hour in missing:
        if day < open_since[0] or (hour != WHOLE_DAY and (day, hour) < open_since):
            known[(day, hour), names] = found.get((day, hour), {})
    return found | {one: known[one, names] for one in asked if (one, names) in known}
