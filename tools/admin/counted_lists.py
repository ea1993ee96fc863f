"""Lists that are counted to a limit, together with the rows of a page."""

from typing import TYPE_CHECKING, Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import IntegerField, Subquery
from django.http import HttpRequest
from django.utils.functional import cached_property

if TYPE_CHECKING:
    _Paginator = Paginator[Any]
else:
    _Paginator = Paginator

#: Rows of a list that are counted and paged through; a longer one is shown as "10,000+".
COUNT_LIMIT = 10_000


class CappedPaginator(_Paginator):
    """Pages through the first :data:`COUNT_LIMIT` rows, and counts no further."""

    object_list: Any

    @cached_property
    def found(self) -> int:
        return int(self.object_list.order_by().values("pk")[: COUNT_LIMIT + 1].count())

    @cached_property
    def count(self) -> int:
        return min(self.found, COUNT_LIMIT)

    @property
    def is_capped(self) -> bool:
        return self.found > COUNT_LIMIT

    @property
    def shown_count(self) -> str:
        """The number of rows in words: exact, or ``10,000+``."""
        return f"{self.count:,}+" if self.is_capped else f"{self.count:,}"


class CountOf(Subquery):
    """How many rows a query has, as a column of another."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


class PreparedList(ChangeList):
    """A list whose rows are given what they show by ``prepare_rows`` of its pages."""

    model_admin: Any
    paginator: Any

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.model_admin.prepare_rows(request, self.result_list)


class CountedList(PreparedList):
    """A list that reads the rows of a page, and how many there are, in one query."""

    def get_results(self, request: HttpRequest) -> None:
        counted = self.queryset.order_by().values("pk")[: COUNT_LIMIT + 1]
        begin = (self.page_num - 1) * self.list_per_page
        found: list[Any] = []
        if 0 <= begin < COUNT_LIMIT:
            rows = self.queryset.annotate(counted_rows=CountOf(counted))
            found = list(rows[begin : begin + self.list_per_page])
        if not found and self.page_num != 1:
            raise IncorrectLookupParameters
        pages: Any = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
        pages.found = found[0].counted_rows if found else 0
        self.paginator, self.result_list, self.can_show_all = pages, found, False
        self.result_count = self.full_result_count = pages.count  # the search box shows no other
        self.multi_page = pages.count > self.list_per_page
        self.show_full_result_count, self.show_admin_actions = False, bool(found)
        self.model_admin.prepare_rows(request, found)
