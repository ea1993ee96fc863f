"""Bounds on what an admin list looks at: by time, and by how many records back."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

#: Newest rows among which text and unindexed conditions are looked for.
WINDOW = 100_000
#: The same for a list that is filtered: its rows lie far apart, and each costs a page of the disk.
LISTED_WINDOW = 20_000

if TYPE_CHECKING:
    Rows = QuerySet[Any]
else:
    Rows = QuerySet


def newest(rows: Rows) -> Q:
    """The condition that keeps what is among the :data:`WINDOW` highest ids from the highest of ``rows`` down."""
    last = rows.order_by("-pk").values_list("pk", flat=True).first() or 0
    return Q(pk__gt=last - WINDOW)


def newest_listed(rows: Rows) -> Q:
    """The condition that keeps the first :data:`LISTED_WINDOW` of ``rows``, which an index lists by falling id."""
    beyond = rows.order_by("-pk").values_list("pk", flat=True)[LISTED_WINDOW : LISTED_WINDOW + 1]
    return Q(pk__gt=next(iter(beyond), 0))


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

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        days = self.days.get(self.value() or "")
        if days is None:
            return queryset
        midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
        return self.since(queryset, midnight - timedelta(days=days))

    def since(self, queryset: Rows, moment: datetime) -> Rows:
        """``queryset`` without what happened before ``moment``."""
        raise NotImplementedError


def recorded_since(field: str) -> type[PeriodFilter]:
    """A filter on ``field``, a time that grows with the id and needs no index.

    The moment is turned into an id, which narrows whatever index the list walks.
    """

    class RecordedSince(PeriodFilter):
        def since(self, queryset: Rows, moment: datetime) -> Rows:
            return queryset.filter(pk__gte=first_id_since(queryset.model, field, moment))

    return RecordedSince
