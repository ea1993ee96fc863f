"""Numbers of the first page, from sums that are kept up to date: no message is read for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.db.models import F, QuerySet, Sum
from django.urls import reverse

from agent.domain.budgets import SpendKind, cost_words
from agent.domain.types import is_playground
from agent.models import ActivitySum, SpendSum, ToolUse
from agent.models.activity import ANSWER_SECONDS, WHOLE_DAY
from agent.record.chats.subject_names import find_subjects, parse_place
from agent.record.sums.activity import TIME_COLUMNS
from agent.record.sums.budgets import BudgetUse, load_budget_uses, load_budgets, load_uses_of
from frostproject.cockpit.alerts import Viewer
from tools.local_time import current_day, today

# Pages of those that money and tokens were spent on.

_PAGES = {
    SpendKind.ENDPOINT: "admin:agent_modelendpoint_change",
    SpendKind.CHAT: "admin:agent_chatsession_change",
}


#: Days that are shown, today among them.
DAYS = 30
#: Chats, people and tools that are listed.
LISTED = 8
COUNTS = (
    *("received", "addressed", "answered", "failed", "sent", "unsent", "unknown"),
    *("runs", "failed_runs", "tool_calls", "failed_calls", *TIME_COLUMNS),
)
_SUMS = {name: Sum(name, default=0) for name in COUNTS}
_SPENT = {
    "calls": Sum("calls"),
    "tokens": Sum(F("input_tokens") + F("output_tokens")),
    "cost": Sum("cost_nano"),
}


@dataclass(frozen=True, slots=True)
class Period:
    """What happened in a day, an hour, or in all of them."""

    name: str
    counts: Mapping[str, int]
    tokens: int = 0
    #: Billionths by currency.
    costs: Mapping[str, int] = field(default_factory=dict)

    @property
    def p50(self) -> float | None:
        return percentile(self.counts, 0.5)

    @property
    def p95(self) -> float | None:
        return percentile(self.counts, 0.95)

    @property
    def p50_words(self) -> str:
        return seconds_words(self.p50)

    @property
    def p95_words(self) -> str:
        return seconds_words(self.p95)

    @property
    def cost_words(self) -> str:
        return ", ".join(
            cost_words(cost, currency) for currency, cost in sorted(self.costs.items()) if cost
        )


@dataclass(slots=True)
class Spender:
    """One endpoint, chat or person with what was spent on it, today and in all days shown."""

    name: str
    url: str
    today: Period
    period: Period
    budgets: list[BudgetUse] = field(default_factory=list)


def percentile(counts: Mapping[str, int], share: float) -> float | None:
    """Seconds within which ``share`` of the answers were given, taken as spread evenly over each
    column; None without answers, infinite where it is in the last column."""
    columns = [counts.get(name, 0) for name in TIME_COLUMNS]
    if not sum(columns):
        return None
    wanted, lower = share * sum(columns), 0.0
    for count, upper in zip(columns, ANSWER_SECONDS, strict=False):
        if count >= wanted and count:
            return lower + (upper - lower) * max(wanted, 0.0) / count
        wanted, lower = wanted - count, float(upper)
    return float("inf")


def seconds_words(seconds: float | None) -> str:
    """As people read it; the last column has no upper bound."""
    if seconds is None:
        return "–"
    if seconds == float("inf"):
        return f"> {ANSWER_SECONDS[-1]} s"
    return f"{seconds:.1f} s" if seconds < ANSWER_SECONDS[4] else f"{seconds:.0f} s"


def days_shown(today: date) -> list[str]:
    return [(today - timedelta(days=back)).isoformat() for back in range(DAYS - 1, -1, -1)]


def load_days(viewer: Viewer) -> list[Period]:
    """Every day shown, the last is today; money only for those who may see all of it."""
    days = days_shown(today())
    counts = _counts(_activity(viewer).filter(hour=WHOLE_DAY, day__gte=days[0]), "day")
    spent: dict[str, tuple[int, dict[str, int]]] = {}
    if viewer.access.is_everything:
        totals = SpendSum.objects.filter(kind=SpendKind.TOTAL, subject="", day__gte=days[0])
        for day, currency, _calls, tokens, cost in _spent(totals, "day"):
            known, costs = spent.get(day, (0, {}))
            spent[day] = known + tokens, costs | {currency: cost}
    return [Period(day, counts.get(day, {}), *spent.get(day, (0, {}))) for day in days]


def load_hours(viewer: Viewer) -> list[Period]:
    """Every hour of today."""
    counts = _counts(_activity(viewer).filter(hour__gt=WHOLE_DAY, day=current_day()), "hour")
    return [Period(f"{hour}:00", counts.get(hour, {})) for hour in range(24)]


def add_up(periods: Sequence[Period]) -> Period:
    """All of ``periods`` in one."""
    costs: dict[str, int] = {}
    for one in periods:
        for currency, cost in one.costs.items():
            costs[currency] = costs.get(currency, 0) + cost
    counts = {name: sum(one.counts.get(name, 0) for one in periods) for name in COUNTS}
    return Period("", counts, sum(one.tokens for one in periods), costs)


def load_tools(viewer: Viewer) -> list[dict[str, Any]]:
    """The tools that were called most often in the days shown."""
    first = days_shown(today())[0]
    rows = ToolUse.objects.filter(viewer.access.condition("session__"), day__gte=first).order_by()
    used = rows.values("tool").annotate(calls=Sum("calls"), failures=Sum("failures"))
    return [dict(row) for row in used.order_by("-calls", "tool")[:LISTED]]


def load_spenders(viewer: Viewer, kind: SpendKind) -> list[Spender]:
    """Those on whom most tokens were spent in the days shown, within reach; playgrounds are left
    out."""
    rows = SpendSum.objects.filter(kind=kind, day__gte=days_shown(today())[0])
    if not viewer.access.is_everything:
        if kind != SpendKind.CHAT:
            return []
        rows = rows.filter(subject__in=viewer.own_places())
    ranked = rows.order_by().values_list("subject").annotate(tokens=_SPENT["tokens"])
    some = ranked.order_by("-tokens", "subject")[: LISTED * 2]
    subjects = [subject for subject, _tokens in some if not _is_tried(kind, subject)][:LISTED]
    chosen = rows.filter(subject__in=subjects)
    spent, of_day = _by_subject(chosen), _by_subject(chosen.filter(day=current_day()))
    told = find_subjects(kind, subjects)
    nothing = Period("", {})
    found = {
        subject: Spender(
            told[subject].name,
            reverse(_PAGES[kind], args=(pk,)) if (pk := told[subject].pk) is not None else "",
            of_day.get(subject, nothing),
            spent[subject],
        )
        for subject in subjects
        if subject in spent
    }
    _add_budgets(kind, found)
    return list(found.values())


def _activity(viewer: Viewer) -> "QuerySet[ActivitySum]":
    return ActivitySum.objects.filter(viewer.access.condition("session__")).order_by()


def _counts(rows: "QuerySet[ActivitySum]", by: str) -> dict[Any, Mapping[str, int]]:
    """The sums of ``rows`` by a column."""
    found: Any = rows.values(by).annotate(**_SUMS)
    return {row[by]: row for row in found}


def _spent(rows: "QuerySet[SpendSum]", by: str) -> "QuerySet[SpendSum, tuple[Any, ...]]":
    """The sums of ``rows`` by a column and currency: calls, tokens, cost."""
    return rows.order_by().values_list(by, "currency").annotate(**_SPENT)


def _is_tried(kind: SpendKind, subject: str) -> bool:
    """Whether it is of a playground."""
    if kind == SpendKind.CHAT:
        parts = parse_place(subject)
        return parts is not None and is_playground(parts.account)
    return kind == SpendKind.PERSON and is_playground(subject.partition("/")[0].rpartition(":")[2])


def _by_subject(rows: "QuerySet[SpendSum]") -> dict[str, Period]:
    found: dict[str, Period] = {}
    for subject, currency, calls, tokens, cost in _spent(rows, "subject"):
        known = found.get(subject, Period("", {}))
        counts = {"calls": known.counts.get("calls", 0) + calls}
        found[subject] = Period("", counts, known.tokens + tokens, {**known.costs, currency: cost})
    return found


def load_total_budgets(viewer: Viewer) -> list[BudgetUse]:
    """The budgets on everything, for those who may see it."""
    if not viewer.may_see_all("agent.view_budget"):
        return []
    return load_uses_of({SpendKind.TOTAL: ""})


def _add_budgets(kind: SpendKind, spenders: Mapping[str, Spender]) -> None:
    """To each the budgets that bound it. Two queries for each budget of the kind."""
    for terms in load_budgets():
        mine = [subject for subject in spenders if terms.subject in ("", subject)]
        if terms.kind != kind or not mine:
            continue
        used = {use.subject: use for use in load_budget_uses(terms, mine)}
        for subject in mine:
            spenders[subject].budgets.append(used.get(subject, BudgetUse(terms, subject, 0)))
