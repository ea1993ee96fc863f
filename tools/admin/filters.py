"""Limits which records an admin list reads: by time, and by number, the newest first."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

#: The newest rows in which text and unindexed conditions are searched.
WINDOW = 100_000
#: The same for a list that is filtered: its rows lie far apart, and each costs a page of the disk.
LISTED_WINDOW = 20_000

if TYPE_CHECKING:
    Rows = QuerySet[Any]
else:
    Rows = QuerySet


def window_floor(rows: Rows) -> int:
    """The id at which the newest :data:`WINDOW` ids begin, counted down from the highest of
    ``rows``."""
    last = rows.order_by("-pk").values_list("pk", flat=True).first() or 0
    return int(max(0, last - WINDOW + 1))


def listed_floor(rows: Rows) -> int:
    """The id at which the newest :data:`LISTED_WINDOW` of ``rows`` begin, which an index lists by
    falling id."""
    beyond = rows.order_by("-pk").values_list("pk", flat=True)[LISTED_WINDOW : LISTED_WINDOW + 1]
    return int(next(iter(beyond), -1)) + 1


def first_id_since(model: type[Model], field: str, moment: datetime) -> int:
    """The id at which rows begin whose ``field`` is ``moment`` or later.

    ``field`` is a time that grows with the id. About 20 look-ups in a million rows.
    """
    rows = model._default_manager.order_by("pk").values_list("pk", field)
    first, last = rows.first(), rows.last()
    if first is None or last is None:
        return 0
    low, high = int(first[0]), int(last[0]) + 1
    while low < high:
        middle = (low + high) // 2
        pk, at = rows.filter(pk__gte=middle).first() or (high, moment)
        if at >= moment:
            high = middle
        else:
            low = pk + 1
    return low


class PeriodFilter(admin.SimpleListFilter):
    """Today, a week, a month."""

    title = _("time")
    parameter_name = "since"
    days: ClassVar = {"today": 0, "7d": 7, "30d": 30}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("today", _("Today")), ("7d", _("Past 7 days")), ("30d", _("Past 30 days"))]

    @property
    def moment(self) -> datetime | None:
        """When the chosen period began; None for all times."""
        days = self.days.get(self.value() or "")
        if days is None:
            return None
        return timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(
            days=days
        )


class RecordedSince(PeriodFilter):
    """By a time that grows with the id and needs no index: the period is turned into an id.

    The list applies :meth:`floor` itself. Of two lower bounds in one query SQLite walks
    to either, so that a list must have one alone.
    """

    field = "created_at"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset

    def floor(self, model: type[Model]) -> int:
        return first_id_since(model, self.field, self.moment) if self.moment else 0
