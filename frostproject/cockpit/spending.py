"""What was spent in a period: by whom and on what, the most first, with budgets beside. They are
changed here too."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from heapq import nsmallest
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum, Value
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.text import capfirst
from django.utils.translation import gettext as _, pgettext

from agent.domain.budgets import TOKENS, BudgetTerms, SpendKind, cost_words
from agent.domain.types import is_playground
from agent.models import Budget, ModelEndpoint, SpendSum
from agent.record.chats.subject_names import find_subjects, parse_place
from agent.record.ground.statements import select_all
from agent.record.settings.chat_choices import free_name
from agent.record.sums import past
from agent.record.sums.budgets import BudgetUse, budget_terms, load_uses
from agent.record.sums.spendings import KEPT_DAYS
from frostproject.cockpit.viewer import find_viewer
from tools.admin.record_pages import go_back, parse_row_number, require
from tools.admin.settings_page import SEEN, row_version
from tools.live_rows import ConfigVersion, LiveKind
from tools.local_time import today

#: Whose spending is ranked, and by which they are found on pages of their own.
PAGES = {
    SpendKind.PERSON: "admin:person",
    SpendKind.CHAT: "admin:agent_chatsession_change",
    SpendKind.ENDPOINT: "admin:agent_modelendpoint_change",
    SpendKind.TOOL: "",
}
#: Choices of a period: days up to today; 0 for the present month.
PERIODS = {"today": 1, "7d": 7, "30d": 30, "month": 0}
USUAL = "7d"
#: Those of each kind that are shown, and on the page of one kind alone.
LISTED, LISTED_ALONE = 8, 100
#: The last page of one kind that can be asked for.
MOST_PAGES = 1_000


class Span(NamedTuple):
    """The days that are summed, the last among them. ``note`` says why they are others than the
    address asks for; ``key`` is one of :data:`PERIODS`, "" for days of one's own."""

    first: date
    last: date
    key: str = ""
    note: str = ""


def read_span(given: Mapping[str, str], now: date) -> Span:
    """The days that an address asks for, as far as sums are kept of them."""
    key, note = given.get("since", ""), ""
    oldest = now - timedelta(days=KEPT_DAYS)
    if given.get("from") or given.get("to"):
        try:
            first = date.fromisoformat(given.get("from") or oldest.isoformat())
            last = date.fromisoformat(given.get("to") or now.isoformat())
        except ValueError:
            note = _("That is no day such as 2026-01-31. These are the last 7 days.")
        else:
            if first > last:
                first, last = last, first
                note = _("The first day was after the last one; they have changed places.")
            if first < oldest:
                note = _("Sums are kept for %(days)d days.") % {"days": KEPT_DAYS}
            return Span(max(oldest, min(first, now)), max(oldest, min(last, now)), note=note)
    key = key if key in PERIODS and not note else USUAL
    first = now - timedelta(days=PERIODS[key] - 1) if PERIODS[key] else now.replace(day=1)
    return Span(first, now, key, note)


class Spent(NamedTuple):
    """What was spent on one subject: ``amount`` in the measure by which all are ranked."""

    subject: str
    amount: int
    tokens: int
    calls: int


@dataclass(slots=True)
class Held:
    """A budget with what is used of it. ``seen`` stands for its present state where the reader may
    change it here."""

    row: Budget
    use: BudgetUse
    whom: str = ""
    seen: str = ""
    #: Whether it is one that each has for itself, and stands beside several.
    is_shared: bool = False

    @property
    def limit(self) -> str:
        """As it is typed."""
        return f"{self.row.limit.normalize():f}"


Bar = dict[str, Any]
"""One of those that something was ``spent`` on, its ``name``, ``url``, ``words`` and ``budgets``;
``share`` is in percent of who spent most, ``part`` of all."""


@dataclass(slots=True)
class Ranking:
    """All of one kind. ``each``: the budgets that each of them has for itself."""

    kind: SpendKind
    title: str
    bars: list[Bar]
    has_more: bool
    #: The rank of the first one.
    first: int
    each: list[Held] = field(default_factory=list)


class Totals(NamedTuple):
    """All that was spent, by currency ("" for what has no price)."""

    tokens: int
    calls: int
    cached: int
    costs: dict[str, int]

    @property
    def measures(self) -> list[str]:
        """By what may be ranked: the currency of which most was spent first, tokens last."""
        priced = {currency: cost for currency, cost in self.costs.items() if currency and cost}
        return [*sorted(priced, key=lambda one: (-priced[one], one)), TOKENS]

    @property
    def tokens_words(self) -> str:
        return f"{self.tokens:,} {TOKENS}"

    @property
    def cost_words(self) -> str:
        return ", ".join(cost_words(self.costs[one], one) for one in self.measures[:-1])


class SpendingPage:
    """What one reader asks for: a period, a measure, and one kind alone or all."""

    def __init__(self, request: HttpRequest, site: AdminSite) -> None:
        self.viewer = viewer = find_viewer(request.user)
        self.is_whole = viewer.access.is_everything
        self.span = read_span(request.GET, today())
        self.kinds = list(PAGES) if self.is_whole else [SpendKind.CHAT]
        chosen = request.GET.get("kind", "")
        self.alone = SpendKind(chosen) if chosen in self.kinds else None
        number = request.GET.get("page", "")
        is_number = number.isascii() and number.isdigit() and len(number) < len(str(MOST_PAGES)) + 1
        #: Those of each kind on this page.
        self.count = LISTED_ALONE if self.alone else LISTED
        self.number = max(1, min(int(number), MOST_PAGES)) if is_number and self.alone else 1
        self._by = request.GET.get("by", "")
        self._request, self._budgets = request, site.get_model_admin(Budget)

    def rows(self, kind: SpendKind, span: tuple[date, date] | None = None) -> "QuerySet[SpendSum]":
        """The sums of a kind within reach, in the period or a part of it."""
        first, last = (day.isoformat() for day in span or self.span[:2])
        rows = SpendSum.objects.filter(kind=kind, day__range=(first, last)).order_by()
        if self.is_whole and kind != SpendKind.TOTAL:
            return rows
        return rows.filter(subject__in=[""] if self.is_whole else self._places)

    @cached_property
    def _places(self) -> list[str]:
        return self.viewer.own_places()

    @cached_property
    def totals(self) -> Totals:
        rows = self.rows(SpendKind.TOTAL if self.is_whole else SpendKind.CHAT)
        names = ("calls", "input_tokens", "output_tokens", "cached_tokens", "cost_nano")
        sums = {f"all_{name}": Sum(name) for name in names}
        found = list(rows.values_list("currency").annotate(**sums))
        added = [sum(one[1 + index] for one in found) for index in range(len(names))]
        calls, asked, said, cached, _cost = added
        return Totals(asked + said, calls, cached, {one[0]: one[-1] for one in found})

    @cached_property
    def by(self) -> str:
        """The currency, or tokens, by which all are ranked."""
        return self._by if self._by in self.totals.measures else self.totals.measures[0]

    def words(self, amount: int) -> str:
        return f"{amount:,}" if self.by == TOKENS else cost_words(amount, self.by)

    def rank(self, kinds: Sequence[SpendKind]) -> dict[str, list[Spent]]:
        """Who spent most, of each kind, and one more where there are more. One query, and another
        where the days that are over were not asked for yet."""
        tokens: Any = F("input_tokens") + F("output_tokens")
        money = Sum("cost_nano", filter=Q(currency=self.by), default=0)
        amount = Sum(tokens) if self.by == TOKENS else money
        sums = {"amount": amount, "all_tokens": Sum(tokens), "all_calls": Sum("calls")}

        def add_up(first: date, last: date) -> list[Any]:
            rows: Any = (self.rows(kind, (first, last)) for kind in kinds)
            return [one.values_list("kind", "subject").annotate(**sums) for one in rows]

        (first, last), open_day = self.span[:2], date.fromisoformat(past.open_day())
        begin = (self.number - 1) * self.count
        end, before = begin + self.count + 1, dict[str, _Sums]()
        if self.is_whole and first < open_day:
            version = ConfigVersion.objects.filter(pk=LiveKind.PAST_SUMS)
            shaped = version.values_list(Value(""), Value(""), "number", Value(0), Value(0))
            found = _by_kind(select_all([shaped, *add_up(max(first, open_day), last)]))
            known = past.of_spending.as_of(int(found.pop("", {"": (0,)})[""][0]))
            over = first, min(last, open_day - timedelta(days=1))
            if (asked := (over, self.by, *kinds)) not in known:
                known[asked] = _by_kind(select_all(add_up(*over)))
            before = known[asked]
        else:
            order = ("-amount", "-all_tokens", "subject")
            found = _by_kind(select_all(one.order_by(*order)[:end] for one in add_up(first, last)))
        return {one: _most(found.get(one, {}), before.get(one, {}), begin, end) for one in kinds}

    def rankings(self) -> list[Ranking]:
        titles = {
            SpendKind.PERSON: _("People"),
            SpendKind.CHAT: _("Chats"),
            SpendKind.ENDPOINT: pgettext("spending", "Models"),
            SpendKind.TOOL: _("Tools"),
        }
        shown = [self.alone] if self.alone else self.kinds
        found = self.rank(shown)
        return [self._ranking(kind, titles[kind], found.get(kind, [])) for kind in shown]

    def _ranking(self, kind: SpendKind, title: str, found: list[Spent]) -> Ranking:
        """Without playgrounds, who are not ranked."""
        ranked = [one for one in found[: self.count] if not is_tried(kind, one.subject)]
        named = find_subjects(kind, [one.subject for one in ranked])
        most = max([1, *(one.amount for one in ranked)])
        whole = self.totals.tokens if self.by == TOKENS else self.totals.costs[self.by]
        bars = []
        for one in ranked:
            page: object = named[one.subject].pk
            if kind == SpendKind.PERSON:
                page = one.subject.rpartition("/")[2] or None
            url = reverse(PAGES[kind], args=(page,)) if page is not None and PAGES[kind] else ""
            part = one.amount * 100 // whole if whole and self.is_whole else 0
            share = one.amount * 100 // most
            shown: Bar = {"spent": one, "name": named[one.subject].name, "url": url, "budgets": []}
            shown |= {"words": self.words(one.amount), "share": share, "part": part}
            bars.append(shown)
        first = (self.number - 1) * self.count + 1
        return Ranking(kind, title, bars, len(found) > self.count, first)

    # --- Budgets ----------------------------------------------------------------------

    def add_budgets(self, rankings: Sequence[Ranking]) -> dict[str, list[Held]]:
        """To each bar the budgets that bound it; those on everything, and all others, are given
        back. Two queries for all, and one for the names of each kind of the others."""
        rows = self._load_budgets()
        bars = [(one.kind, bar) for one in rankings for bar in one.bars]
        beside: list[tuple[Budget, BudgetTerms, Bar]] = [
            (row, terms, bar)
            for row, terms in rows
            for kind, bar in bars
            if terms.kind == kind and terms.subject in ("", bar["spent"].subject)
            if row.enabled or terms.subject
        ]
        shown = {row.pk for row, terms, _bar in beside if terms.subject}
        others = [(row, terms) for row, terms in rows if row.pk not in shown]
        wanted = [(terms, bar["spent"].subject) for _row, terms, bar in beside]
        uses = load_uses([*wanted, *((terms, terms.subject) for _row, terms in others)])
        for (row, terms, bar), use in zip(beside, uses, strict=False):
            bar["budgets"].append(self._held(row, use, is_own=bool(terms.subject)))
        rest = [
            self._held(row, use) for (row, _), use in zip(others, uses[len(beside) :], strict=True)
        ]
        return self._sort_others(rest, {one.kind: one for one in rankings})

    def _sort_others(
        self, rest: list[Held], rankings: Mapping[SpendKind, Ranking]
    ) -> dict[str, list[Held]]:
        sorted_out: dict[str, list[Held]] = {"whole": [], "others": []}
        for kind in {one.use.terms.kind for one in rest}:
            own = [one for one in rest if one.use.terms.kind == kind]
            named = find_subjects(kind, {one.use.subject for one in own if one.use.subject})
            for one in own:
                if one.use.subject:
                    one.whom = f"{kind.label} · {named[one.use.subject].name}"
        for one in rest:
            terms = one.use.terms
            if terms.kind == SpendKind.TOTAL:
                sorted_out["whole"].append(one)
            elif not terms.subject and terms.kind in rankings:
                rankings[terms.kind].each.append(one)
            else:
                one.whom = one.whom or _("each %(kind)s for itself") % {"kind": terms.kind.label}
                sorted_out["others"].append(one)
        return sorted_out

    def _load_budgets(self) -> list[tuple[Budget, BudgetTerms]]:
        """Those within reach: to who runs single chats those that are in force."""
        if self.is_whole and not self.viewer.may("agent.view_budget"):
            return []
        rows = Budget.objects.order_by("name")
        rows = rows if self.is_whole else rows.filter(enabled=True, kind=SpendKind.CHAT)
        found = [(row, budget_terms(row)) for row in rows]
        if self.is_whole:
            return found
        return [one for one in found if one[1].subject in ("", *self._places)]

    def _held(self, row: Budget, use: BudgetUse, *, is_own: bool = True) -> Held:
        """``is_own``: it is not one of those that each has for itself, which are changed once."""
        if (is_own and self.is_whole) and self._budgets.has_change_permission(self._request, row):
            return Held(row, use, seen=row_version(row, is_fresh=True))
        return Held(row, use, is_shared=not is_own)

    def units(self) -> list[str]:
        """What a budget can be in, for those who may add one: where endpoints have prices, these
        first."""
        if not (self.is_whole and self._budgets.has_add_permission(self._request)):
            return []
        is_priced = Q(price_input__gt=0) | Q(price_output__gt=0)
        priced = ModelEndpoint.objects.filter(is_priced).order_by("currency")
        return [*priced.values_list("currency", flat=True).distinct(), TOKENS]


_Sums = Mapping[str, Sequence[int]]
"""Amount, tokens and calls by subject."""


def _by_kind(rows: Iterable[Sequence[Any]]) -> dict[str, _Sums]:
    found: dict[str, dict[str, Sequence[int]]] = {}
    for kind, subject, *numbers in rows:
        found.setdefault(kind, {})[subject] = numbers
    return dict(found)


def _most(lately: _Sums, before: _Sums, begin: int, end: int) -> list[Spent]:
    """Those with the largest sums of both, from one rank to another."""
    sums = [(-amount, -tokens, one, calls) for one, (amount, tokens, calls) in lately.items()]
    if before:
        sums = [
            (amount - old[0], tokens - old[1], one, calls + old[2])
            for amount, tokens, one, calls in sums
            for old in (before.get(one, (0, 0, 0)),)
        ]
        sums += [
            (-old[0], -old[1], one, old[2]) for one, old in before.items() if one not in lately
        ]
    most = nsmallest(end, sums)[begin:]
    return [
        Spent(one, int(-amount), int(-tokens), int(calls)) for amount, tokens, one, calls in most
    ]


def is_tried(kind: SpendKind, subject: str) -> bool:
    """Whether it is of a playground."""
    if kind == SpendKind.CHAT:
        parts = parse_place(subject)
        return parts is not None and is_playground(parts.account)
    return kind == SpendKind.PERSON and is_playground(subject.partition("/")[0].rpartition(":")[2])


def spending_page(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    """All, for those who may see it; to others what was spent on their own chats."""
    page = SpendingPage(request, site)
    if page.is_whole and not page.viewer.may("agent.view_spendsum"):
        raise PermissionDenied
    rankings, units = page.rankings(), page.units()
    fields = {"units": units, "by": page.by}
    return {
        "title": _("Spending"),
        "page": page,
        "here_url": request.get_full_path(),
        "rankings": rankings,
        "units": units,
        "add_fields": render_to_string("admin/spending/add_fields.html", fields) if units else "",
        "seen_name": SEEN,
        **page.add_budgets(rankings),
    }


def keep_budget(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Change or add the budget that a form beside a bar is about, by the checks of its own page and
    with the same history; then back to the bar."""
    admin: Any = site.get_model_admin(Budget)
    entered, row = request.POST.copy(), None
    if "row" in entered:
        row = get_object_or_404(Budget, pk=parse_row_number(str(entered["row"])))
        require(admin.has_change_permission(request, row))
    else:
        require(admin.has_add_permission(request))
        entered["name"] = free_name(entered.get("name", "").strip() or _("budget"))
    with transaction.atomic():
        form = admin.partial_form(request, entered, row)
        if form.is_valid():
            saved = form.save(commit=False)
            admin.save_model(request, saved, form, change=row is not None)
            log = admin.log_addition if row is None else admin.log_change
            log(request, saved, admin.construct_change_message(request, form, [], row is None))
            words = _("The budget “%(name)s” is in force from the next message on.")
            if not saved.enabled:
                words = _("The budget “%(name)s” is switched off.")
            messages.success(request, words % {"name": saved})
    for line in _problems(form):
        messages.error(request, line)
    return go_back(request, "admin:spending")


def _problems(form: Any) -> Iterable[str]:
    """What is wrong, with the names of fields."""
    for name, lines in form.errors.items():
        label = str(capfirst(form.fields[name].label)) if name in form.fields else ""
        yield from (f"{label}: {line}" if label else line for line in lines)
