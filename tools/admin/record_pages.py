"""Admin pages for records: read-only, and as fast with a million rows as with ten.

A list never counts, sorts or scans a whole table. It has one order, counts at most
:data:`tools.admin.counted_lists.COUNT_LIMIT` rows, and conditions without an index are searched in
the newest :data:`WINDOW` rows only, which the page says.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import Model, Q, QuerySet, TextChoices
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, get_script_prefix, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language, gettext_lazy as _
from django.views.decorators.http import require_POST

from tools.admin.counted_lists import CappedPaginator, CountedList, PreparedList
from tools.models import ToolConfigChange
from tools.models.change import ChangeKind
from tools.models.row_history import find_history, record_event
from tools.text.readable import fill

#: The newest rows in which text and unindexed conditions are searched.
WINDOW = 100_000
#: The same for a list that is filtered: its rows lie far apart, and each costs a page of the disk.
LISTED_WINDOW = 20_000

if TYPE_CHECKING:
    Rows = QuerySet[Any]
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
else:
    Rows, ModelAdmin, ModelForm = QuerySet, admin.ModelAdmin, forms.ModelForm


def window_floor(rows: Rows, below: int = 0) -> int:
    """The id at which the :data:`WINDOW` ids before ``below`` begin; without it, those before the
    end of ``rows``."""
    end = below or (rows.order_by("-pk").values_list("pk", flat=True).first() or 0) + 1
    return int(max(0, end - WINDOW))


def listed_floor(rows: Rows) -> int:
    """The id at which the newest :data:`LISTED_WINDOW` of ``rows`` begin, which an index lists by
    falling id."""
    beyond = rows.order_by("-pk").values_list("pk", flat=True)[LISTED_WINDOW : LISTED_WINDOW + 1]
    return int(next(iter(beyond), -1)) + 1


#: Halves the ids between the first row and the last until one is left: a look-up by id for each
#: half, about 20 in a million rows.
_SEEK = """WITH RECURSIVE seek(low, high) AS (
    SELECT MIN(id), MAX(id) + 1 FROM {table} UNION ALL SELECT
    CASE WHEN {at} >= %s THEN low ELSE (low + high) / 2 + 1 END,
    CASE WHEN {at} >= %s THEN (low + high) / 2 ELSE high END
    FROM seek WHERE low < high
) SELECT low FROM seek WHERE low = high"""
_AT = "(SELECT {column} FROM {table} WHERE id >= (low + high) / 2 ORDER BY id LIMIT 1)"


def first_id_since(model: type[Model], field: str, moment: datetime) -> int:
    """The id at which rows begin whose ``field`` is ``moment`` or later; 0 in an empty table.

    ``field`` is a time that grows with the id. One query.
    """
    names = {"table": model._meta.db_table, "column": field}
    quoted = {name: connection.ops.quote_name(value) for name, value in names.items()}
    column: Any = model._meta.get_field(field)
    value = column.get_db_prep_value(moment, connection)
    with connection.cursor() as cursor:
        cursor.execute(_SEEK.format(at=_AT.format(**quoted), **quoted), (value, value))
        found = cursor.fetchone()
    return int(found[0]) if found else 0


def choice_filter(
    label: Any,
    name: str,
    offered: Callable[[HttpRequest], Iterable[tuple[str, Any]]],
    narrow: Callable[[Rows, str], Rows],
) -> type[admin.SimpleListFilter]:
    """A filter of a list, ``name`` in its address: ``narrow`` gives the rows that are meant by the
    value that was chosen among those that are ``offered``, each with its words."""

    class ChoiceFilter(admin.SimpleListFilter):
        title, parameter_name = label, name

        def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, Any]]:
            return list(offered(request))

        def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
            return narrow(queryset, value) if (value := self.value()) else queryset

    return ChoiceFilter


class PeriodFilter(admin.SimpleListFilter):
    """Today, a week, a month."""

    title = _("time")
    parameter_name = "since"
    days: ClassVar = {"today": 0, "7d": 7, "30d": 30}

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, Any]]:
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
    """By a time that grows with the id and needs no index: the period is turned into ids. It may
    also be from one day to another, in either order.

    The list applies :meth:`bounds` itself. Of two lower bounds in one query SQLite walks
    to either, so that a list must have one alone, and so it is with upper ones.
    """

    field = "created_at"
    template = "admin/period_filter.html"

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        days = [_parse_day(params.get("since")), _parse_day(params.pop("until", None))]
        self.first, self.last = sorted(days) if all(days) else days  # type: ignore[type-var]
        super().__init__(request, params, model, model_admin)

    def expected_parameters(self) -> list[Any]:
        return ["since", "until"]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        asked = {"since": self.first, "until": self.last}
        self.others = {k: v for k, v in changelist.params.items() if k not in asked}
        is_span = self.first or self.last
        for value, words in (("", _("All")), *self.lookup_choices):
            there = changelist.get_query_string({"since": value or None, "until": None})
            is_chosen = not is_span and value == (self.value() if self.moment else "")
            yield {"selected": is_chosen, "query_string": there, "display": words}
        if is_span:
            words = f"{self.first or '…'} – {self.last or '…'}"
            yield {"selected": True, "query_string": changelist.get_query_string(asked)} | {
                "display": words
            }

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset

    def bounds(self, model: type[Model]) -> tuple[int, int]:
        """The id with which the period begins, and the one before which it ends; 0 for none."""
        begin = _begin_of(self.first) if self.first else self.moment
        floor = first_id_since(model, self.field, begin) if begin else 0
        end = _begin_of(self.last + timedelta(days=1)) if self.last else None
        return floor, first_id_since(model, self.field, end) if end else 0


def _parse_day(values: Any) -> date | None:
    """The day that a parameter of an address names; None for what is none."""
    try:
        day = date.fromisoformat(values[-1])
    except (ValueError, TypeError):
        return None
    return day if YEARS[0] <= day.year < YEARS[1] else None


def _begin_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


#: Years of which days are looked for.
YEARS = (2000, 2100)
#: Hits of a search, at most, for each way in which a row can match.
HIT_LIMIT = 1_000
#: The most words of a search that are used.
WORD_LIMIT = 10
#: Characters of a long text that a list shows.
EXCERPT = 120


#: For views of pages that change something.
by_post = method_decorator(require_POST)


def require(is_allowed: object) -> None:
    """Raises PermissionDenied, for a page that is not for its reader."""
    if not is_allowed:
        raise PermissionDenied


def go_back(request: HttpRequest, otherwise: Any, *arguments: object) -> HttpResponse:
    """To the page of this site that the form names as ``next``, else to ``otherwise``."""
    wanted = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure())
    return redirect(wanted) if is_ours else redirect(otherwise, *arguments)


def author_of(request: HttpRequest) -> User:
    """Who is signed in at a page, as the author of changes."""
    return cast("User", request.user)


class RecordChangeList(CountedList):
    """A list in one order, whose every query is short by an index or a bound."""

    is_windowed = False
    #: Where a list that was bounded continues: below this id, 0 for nowhere; None for others.
    further: int | None = None

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Rows:
        rows: Rows = super().get_queryset(request, exclude_parameters)
        below = parse_row_number(self.params.get("id__lt", ""))
        periods = [one.bounds(self.model) for one in self.filter_specs if hasattr(one, "bounds")]
        since, end = periods[0] if periods else (0, 0)
        if end and not 0 < below <= end:  # else the list continues within the period
            rows, below = rows.filter(pk__lt=end), end
        rows, self.further = self.model_admin.bound_rows(request, rows, below)
        conditions = self.get_filters_params().keys() - self.model_admin.free_lookups
        self.is_windowed = self.further is None and not self.model_admin.has_index(conditions)
        floor = max(window_floor(self.root_queryset, below) if self.is_windowed else 0, since)
        if term := self.query.strip().replace("\0", ""):
            is_filtered = bool(conditions) or self.further is not None
            found = self.model_admin.hits(term, rows, floor, is_filtered=is_filtered)
            rows = rows.filter(pk__in=found)
        rows = rows.filter(pk__gte=floor) if floor else rows
        shown: Rows = rows.annotate(
            **{f"{name}_excerpt": Left(name, EXCERPT) for name in self.model_admin.list_excerpts}
        ).defer(*self.model_admin.list_excerpts, *self.model_admin.list_defer)
        return shown

    def get_ordering(self, request: HttpRequest, queryset: Rows) -> list[Any]:
        """The list's own order, whatever the address asks for: no other one has an index."""
        return list(self.model_admin.get_ordering(request))

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
    """A column of a list, or a field of a page: what it is called, what it shows of a row, by which
    field of the row the list is sorted for it, None for none, and whether it shows a sign for yes,
    no and unknown."""

    short_description: str | Promise
    show: Callable[[Any], object]
    admin_order_field: str | None = None
    boolean: bool = False

    def __call__(self, row: object) -> object:
        return self.show(row)


class LoggedAdmin(ModelAdmin):
    """Pages that keep what is done there in the one history of rows, in place of Django's log."""

    #: What they show beside fields, under the names by which ``list_display`` and ``fields`` call
    #: it.
    columns: ClassVar[Mapping[str, Column]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, column in cls.columns.items():
            setattr(cls, name, column)

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

    #: What people may do with the rows, as far as they have the permission to.
    rights: ClassVar[frozenset[str]] = frozenset({"add", "change", "delete"})

    #: Addresses beside Django's own, of a class and of each of its bases: the name of one, and the
    #: route to the method ``<name>_view``.
    addresses: ClassVar[Addresses] = ()
    change_list: ClassVar[type[ChangeList]] = PreparedList

    def get_changelist(self, request: HttpRequest, **options: object) -> type[ChangeList]:
        return self.change_list

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Give the ``rows`` of one page of the list what is asked for once for all of them."""

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

    def show_page(
        self, request: HttpRequest, name: str, title: str, row: Model | None = None, **page: object
    ) -> HttpResponse:
        """The page of the template ``name``, about ``row`` or about all."""
        about = {"opts": self.opts, "original": row, "title": title, "media": self.media}
        about["subtitle"] = None if row is None else str(row)
        template = f"admin/{self.opts.app_label}/{self.opts.model_name}/{name}.html"
        context = {**self.admin_site.each_context(request), **about, **page}
        return TemplateResponse(request, template, context)

    def tell_done(
        self,
        request: HttpRequest,
        row: Model,
        words: str,
        logged: str = "",
        level: int = messages.SUCCESS,
    ) -> HttpResponse:
        """Back to the page of ``row``, which says what was done; ``logged`` stands in the row's
        history."""
        if logged:
            self.log_change(request, row, logged)
        self.message_user(request, words, level)
        return go_back(
            request, f"admin:{self.opts.app_label}_{self.opts.model_name}_change", row.pk
        )

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: object = None,
    ) -> HttpResponse:
        context.update(self.page_context(request, obj))
        return super().render_change_form(request, context, add, change, form_url, obj)


class RecordAdmin(PageAdmin):
    """Rows that the program writes and people only read."""

    rights = frozenset()
    actions = None
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    paginator = CappedPaginator
    change_list = RecordChangeList
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

    columns: ClassVar[Mapping[str, Column]] = {
        "outcome": Column(_("state"), lambda row: render_state(row))
    }

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
    #: Whether there are so few rows that a scan in order is fast for every condition.
    are_few: ClassVar[bool] = False
    #: Lookups that narrow any index further.
    free_lookups: ClassVar[frozenset[str]] = frozenset({"since", "until", "id__lt"})

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
        return self.are_few or not given or (len(given) == 1 and given <= self.indexed_lookups)

    def bound_rows(self, request: HttpRequest, rows: Rows, below: int) -> tuple[Rows, int | None]:
        """Of ``rows``, which end ``below`` an id, those that a list reads at all, and the id below
        which it continues, 0 for nowhere; None where nothing is left out."""
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


#: Words of choices that are kept.
LABELS = 1_000


def label_of(choices: type[TextChoices], value: str) -> str:
    """What ``value`` is called; itself where it is none of ``choices``. Where a page asks hundreds
    of times: ``get_..._display`` goes through all choices each time."""
    return _label(choices, value, get_language())


@lru_cache(LABELS)
def _label(choices: type[TextChoices], value: str, language: str | None) -> str:
    try:
        return str(choices(value).label)
    except ValueError:
        return value


def render_state(row: Any) -> str:
    """The state of a row as a coloured label."""
    return render_badge(row.state, label_of(row.State, row.state))


def parse_row_number(term: str) -> int:
    """``term`` as a row's number, written ``12`` or ``#12``; 0, which no row has, if it is none."""
    digits = term.removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else 0


def record_link(page: str, pk: int | None, text: object) -> str:
    """A link to the page of one row, ``page`` being ``<app>_<model>``; "" for no row."""
    address = _first_address(page, get_script_prefix()).replace("/1/", f"/{pk}/") if pk else ""
    return fill('<a href="{}">{}</a>', address, text) if pk else ""


@lru_cache
def _first_address(page: str, prefix: str) -> str:
    """The page of row 1; it begins with ``prefix``. A list has a hundred links to rows."""
    return reverse(f"admin:{page}_change", args=(1,))


def record_links(page: str, pks: Iterable[int]) -> str:
    """Links to the pages of rows by their numbers; "-" for none."""
    return format_html_join(" ", "{}", ((record_link(page, pk, f"#{pk}"),) for pk in pks)) or "-"


def format_moment(at: datetime | None) -> str:
    """A time as lists show it: to the second, without the year it is; "-" for none."""
    if at is None:
        return "-"
    local = timezone.localtime(at)
    form = "%m-%d %H:%M:%S" if local.year == timezone.localtime().year else "%Y-%m-%d %H:%M"
    return fill('<time datetime="{}">{}</time>', local.isoformat(), local.strftime(form))


def clamp_text(text: str, *, is_foreign: bool = False) -> str:
    """The beginning of a text in a list, on three lines at most; ``is_foreign``: it may be in any
    language, whatever the page's."""
    if is_foreign:
        return format_html('<div class="clamped" lang="">{}</div>', text)
    return fill('<div class="clamped">{}</div>', text)


def with_less(text: object, beside: object) -> str:
    """What a cell says, and what stands below it in small."""
    return fill('{} <div class="quiet">{}</div>', text, beside)


def render_badge(value: str, words: object) -> str:
    """A state as a coloured label."""
    return fill('<span class="badge badge-{}">{}</span>', value, words)
