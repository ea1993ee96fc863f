"""Admin pages for records: read-only, and as fast with a million rows as with ten.

A list never counts, sorts or scans a whole table. It has one order, counts at most
:data:`COUNT_LIMIT` rows, and conditions without an index are searched in the newest
:data:`~tools.admin.filters.WINDOW` rows only, which the page says.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import Model, Q
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.functional import Promise, cached_property
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from tools.admin.filters import RecordedSince, Rows, listed_floor, window_floor
from tools.models import ToolConfigChange
from tools.models.change import ChangeKind
from tools.models.row_history import find_history, record_event

#: Rows of a list that are counted and paged through; a longer one is shown as "10,000+".
COUNT_LIMIT = 10_000
#: Hits of a search, at most, for each way in which a row can match.
HIT_LIMIT = 1_000
#: The most words of a search that are used.
WORD_LIMIT = 10
#: Characters of a long text that a list shows.
EXCERPT = 120

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
    _Paginator = Paginator[Any]
else:
    ModelAdmin, ModelForm, _Paginator = admin.ModelAdmin, forms.ModelForm, Paginator


def author_of(request: HttpRequest) -> User:
    """Who is signed in at a page, as the author of changes."""
    return cast("User", request.user)


class CappedPaginator(_Paginator):
    """Pages through the first :data:`COUNT_LIMIT` rows, and counts no further."""

    object_list: Any

    @cached_property
    def _found(self) -> int:
        return int(self.object_list.order_by().values("pk")[: COUNT_LIMIT + 1].count())

    @cached_property
    def count(self) -> int:
        return min(self._found, COUNT_LIMIT)

    @property
    def is_capped(self) -> bool:
        return self._found > COUNT_LIMIT

    @property
    def shown_count(self) -> str:
        """The number of rows in words: exact, or ``10,000+``."""
        return f"{self.count:,}+" if self.is_capped else f"{self.count:,}"


class RecordChangeList(ChangeList):
    """A list in one order, whose every query is short by an index or a bound."""

    model_admin: "RecordAdmin"
    paginator: Any
    is_windowed = False
    #: Where a list that was bounded continues: below this id, 0 for nowhere; None for others.
    further: int | None = None

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Rows:
        rows: Rows = super().get_queryset(request, exclude_parameters)
        rows, self.further = self.model_admin.bound_rows(request, rows)
        conditions = self.get_filters_params().keys() - self.model_admin.free_lookups
        self.is_windowed = self.further is None and not self.model_admin.has_index(conditions)
        floor = self._floor()
        if term := self.query.strip().replace("\0", ""):
            is_filtered = bool(conditions) or self.further is not None
            found = self.model_admin.hits(term, rows, floor, is_filtered=is_filtered)
            rows = rows.filter(pk__in=found)
        rows = rows.filter(pk__gte=floor) if floor else rows
        shown: Rows = rows.annotate(
            **{f"{name}_excerpt": Left(name, EXCERPT) for name in self.model_admin.list_excerpts}
        ).defer(*self.model_admin.list_excerpts, *self.model_admin.list_defer)
        return shown

    def _floor(self) -> int:
        """The lowest id that is read."""
        periods = (spec for spec in self.filter_specs if isinstance(spec, RecordedSince))
        return max(
            window_floor(self.root_queryset) if self.is_windowed else 0,
            *(spec.floor(self.model) for spec in periods),
            0,
        )

    def get_ordering(self, request: HttpRequest, queryset: Rows) -> list[Any]:
        """The list's own order, whatever the address asks for: no other one has an index."""
        return list(self.model_admin.get_ordering(request))

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.full_result_count = (
            self.result_count
        )  # so that the search box shows no number of its own

    @property
    def older_rows_url(self) -> str:
        """The address where a list continues that is longer than what is counted; "" if it ends on
        this page."""
        if self.page_num < self.paginator.num_pages:
            return ""
        if not self.paginator.is_capped:
            return self.get_query_string({"id__lt": self.further}) if self.further else ""
        return self.get_query_string(self.model_admin.beyond(list(self.result_list)[-1]))


Addresses = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list, or a field of a page: what it is called, what it shows of a row, and by
    which field of the row the list is sorted for it, None for none."""

    short_description: str | Promise
    show: Callable[[Any], object]
    admin_order_field: str | None = None

    def __call__(self, row: Any) -> object:
        return self.show(row)


class LoggedAdmin(ModelAdmin):
    """Pages that keep what is done there in the one history of rows, in place of Django's log."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        return record_event(author_of(request), obj, ChangeKind.ADDED, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Words stand with the change of what the row holds, if there is one; which fields that
        were, it says itself. A form that was saved as it was is nothing to tell."""
        change: ToolConfigChange | None = getattr(obj, "recorded", None)
        if change is None:
            if message == []:
                return None
            return record_event(author_of(request), obj, ChangeKind.DONE, message)
        if not isinstance(message, list):
            change.words = f"{change.words} {message}".strip()
            change.save(update_fields=["words"])
        return change

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Model]) -> Any:
        return [record_event(author_of(request), row, ChangeKind.DELETED) for row in queryset]

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        row = self.get_object(request, unquote(object_id))
        found = ToolConfigChange.objects.none() if row is None else find_history(row)
        rows = self.get_paginator(request, found.select_related("author").order_by("at", "pk"), 100)
        shown = rows.get_page(request.GET.get(PAGE_VAR, 1))
        page = {
            "action_list": shown,
            "page_range": rows.get_elided_page_range(shown.number),
            "pagination_required": rows.num_pages > 1,
        }
        return super().history_view(request, object_id, page | (extra_context or {}))


class PageAdmin(LoggedAdmin):
    """Pages of one row that show more than its fields."""

    #: What they show beside fields, under the names by which ``list_display`` and ``fields`` call
    #: it.
    columns: ClassVar[Mapping[str, Column]] = {}

    #: What people may do with the rows, as far as they have the permission to.
    rights: ClassVar[frozenset[str]] = frozenset({"add", "change", "delete"})

    #: Addresses beside Django's own, of a class and of each of its bases: the name of one, and the
    #: route to the method ``<name>_view``.
    addresses: ClassVar[Addresses] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, column in cls.columns.items():
            setattr(cls, name, column)

    def get_urls(self) -> list[URLPattern]:
        own = [one for cls in type(self).__mro__ for one in vars(cls).get("addresses", ())]
        return [
            *(self.own_path(route, name, getattr(self, f"{name}_view")) for name, route in own),
            *super().get_urls(),
        ]

    def own_path(self, route: str, name: str, view: Callable[..., Any]) -> URLPattern:
        """The address of ``view``, named after the table and ``name``."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        return path(route, self.admin_site.admin_view(view), name=name)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return "add" in self.rights and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "change" in self.rights and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "delete" in self.rights and super().has_delete_permission(request, obj)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what the list's filters offer: with ``?sealed__startswith=`` in the address, a
        secret could be guessed."""
        filters: Iterable[Any] = self.list_filter
        names = [
            (f, f"{f}__exact", f"{f}__isnull") if isinstance(f, str) else (f.parameter_name,)
            for f in filters
        ]
        return any(lookup in forms for forms in names)

    def page_context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """The context of one row's page in addition to the default one."""
        return {}

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        context.update(self.page_context(request, obj))
        return super().render_change_form(request, context, add, change, form_url, obj)


class RecordAdmin(PageAdmin):
    """Rows that the program writes and people only read."""

    rights = frozenset()
    actions = None
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 50
    sortable_by = ()
    change_list_template = "admin/record_list.html"
    change_form_template = "admin/record_form.html"
    search_fields: ClassVar = ("pk",)  # shows the search box; what is searched is in `hits`
    search_help_text: ClassVar = _(
        "Ids are found exactly, words among the newest 100,000 records, or the newest 20,000 of a "
        "filtered list."
    )

    #: Texts that a list shows the beginning of, as ``<name>_excerpt``.
    list_excerpts: ClassVar[tuple[str, ...]] = ()
    #: Large fields that a list does not load.
    list_defer: ClassVar[tuple[str, ...]] = ()
    #: Lookups, each with an index of its own, that a search compares with the whole term, and how
    #: they read it.
    exact_lookups: ClassVar[Mapping[str, Callable[[str], object]]] = {
        "pk": lambda term: parse_row_number(term)
    }
    #: Texts that words are searched in.
    text_fields: ClassVar[tuple[str, ...]] = ()
    #: Lookups with an index that gives the list's order as well.
    indexed_lookups: ClassVar[frozenset[str]] = frozenset()
    #: Lookups that narrow any index further.
    free_lookups: ClassVar[frozenset[str]] = frozenset({"since", "id__lt"})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return RecordChangeList

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what the pages link to: another one typed into the address could scan the table."""
        return (
            lookup in self.free_lookups
            or lookup in self.indexed_lookups
            or super().lookup_allowed(lookup, value, request)
        )

    def has_index(self, conditions: Iterable[str]) -> bool:
        """Whether one index answers all ``conditions`` and gives the order."""
        given = set(conditions)
        return not given or (len(given) == 1 and given <= self.indexed_lookups)

    def bound_rows(self, request: HttpRequest, rows: Rows) -> tuple[Rows, int | None]:
        """Of ``rows``, those that a list reads at all, and the id below which it continues, 0 for
        nowhere; None where nothing is left out."""
        return rows, None

    def beyond(self, row: Any) -> dict[str, object]:
        """The lookup that continues the list after ``row``."""
        return {"id__lt": row.pk}

    def get_search_results(
        self, request: HttpRequest, queryset: Rows, search_term: str
    ) -> tuple[Rows, bool]:
        """Nothing: the list searches for itself, once its bounds are known."""
        return queryset, False

    def hits(self, term: str, rows: Rows, floor: int, *, is_filtered: bool) -> set[int]:
        """Ids from ``floor`` on of the ``rows`` that match ``term``, searched within limits.

        An index that filters ``rows`` is left to do so; otherwise each way to match has its own.
        """
        rows = rows.order_by("-pk")
        recent = rows.filter(pk__gte=floor)
        exact, words = list(self.exact_matches(term)), []
        if self.text_fields:
            each = (
                reduce(or_, (Q((f"{f}__icontains", word)) for f in self.text_fields))
                for word in term.split()[:WORD_LIMIT]
            )
            words.append(Q(*each))
        if is_filtered:
            found = [
                rows.filter(reduce(or_, exact + words), pk__gte=max(floor, listed_floor(recent)))
            ]
        else:
            found = [recent.filter(condition) for condition in exact]
            found += [
                rows.filter(condition, pk__gte=max(floor, window_floor(rows)))
                for condition in words
            ]
        return {pk for matches in found for pk in matches.values_list("pk", flat=True)[:HIT_LIMIT]}

    def exact_matches(self, term: str) -> Iterable[Q]:
        """Conditions under which a row is meant by ``term``, each with an index of its own."""
        for lookup, parse in self.exact_lookups.items():
            yield Q((lookup, parse(term)))


class StateRecordAdmin(RecordAdmin):
    """A record of rows with a state, which is the column ``outcome``."""

    outcome = Column(_("state"), lambda row: render_state(row))


def render_state(row: Any) -> str:
    """The state of a row as a coloured label."""
    return render_badge(row.state, row.get_state_display())


def parse_row_number(term: str) -> int:
    """``term`` as a row's number, written ``12`` or ``#12``; 0, which no row has, if it is none."""
    digits = term.removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else 0


def record_link(page: str, pk: int | None, text: object) -> str:
    """A link to the page of one row, ``page`` being ``<app>_<model>``; "" for no row."""
    return (
        format_html('<a href="{}">{}</a>', reverse(f"admin:{page}_change", args=(pk,)), text)
        if pk
        else ""
    )


def record_links(page: str, pks: Iterable[int]) -> str:
    """Links to the pages of rows by their numbers; "-" for none."""
    return format_html_join(" ", "{}", ((record_link(page, pk, f"#{pk}"),) for pk in pks)) or "-"


def format_moment(at: datetime | None) -> str:
    """A time as lists show it: to the second, without the year it is; "-" for none."""
    if at is None:
        return "-"
    local = timezone.localtime(at)
    form = "%m-%d %H:%M:%S" if local.year == timezone.localtime().year else "%Y-%m-%d %H:%M"
    return format_html('<time datetime="{}">{}</time>', local.isoformat(), local.strftime(form))


def clamp_text(text: str, *, is_foreign: bool = False) -> str:
    """The beginning of a text in a list, on three lines at most; ``is_foreign``: it may be in any
    language, whatever the page's."""
    if is_foreign:
        return format_html('<div class="clamped" lang="">{}</div>', text)
    return format_html('<div class="clamped">{}</div>', text)


def render_badge(value: str, words: object) -> str:
    """A state as a coloured label."""
    return format_html('<span class="badge badge-{}">{}</span>', value, words)
