"""The first page: what happened, from sums that are kept up to date, and what to look at now."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agent.domain import budgets, states, types
from agent.domain.budgets import SpendKind, cost_words
from agent.models import UNSETTLED, Message, Run, SpendSum, ToolUse
from agent.models.activity import ANSWER_SECONDS, WHOLE_DAY
from agent.record.ground.statements import select_all
from agent.record.settings.chat_manners import is_for_everything
from agent.record.sums import past
from agent.record.sums.activity import TIME_COLUMNS
from agent.record.sums.budgets import load_uses_of
from frostproject.cockpit.alerts import list_alerts, put_away
from frostproject.cockpit.viewer import COUNTS, DAYS, Viewer, days_shown, find_viewer
from frostproject.models import SignInRecord
from frostproject.signin import plain_http
from onebot.admin.bots import client_words, nickname_of
from tools.local_time import current_day, today
from tools.text.readable import fill

#: Chats, people and tools that are listed.
LISTED = 8


@dataclass(frozen=True, slots=True)
class Period:
    """What happened in a day, an hour, or in all of them."""

    name: str
    counts: Mapping[str, int]
    tokens: int = 0
    #: Billionths by currency.
    costs: Mapping[str, int] = field(default_factory=dict)

    @property
    def p50_words(self) -> str:
        return seconds_words(percentile(self.counts, 0.5))

    @property
    def p95_words(self) -> str:
        return seconds_words(percentile(self.counts, 0.95))

    @property
    def cost_words(self) -> str:
        return ", ".join(
            cost_words(cost, currency) for currency, cost in sorted(self.costs.items()) if cost
        )


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


def load_days(viewer: Viewer) -> list[Period]:
    """Every day shown, the last is today; money only for those who may see all of it."""
    days = days_shown(today())
    counts = viewer.sums
    spent: dict[str, tuple[int, dict[str, int]]] = {}
    if viewer.access.is_everything:
        totals = SpendSum.objects.filter(kind=SpendKind.TOTAL, subject="", day__gte=days[0])
        columns = ("input_tokens", "output_tokens", "cost_nano")
        for day, currency, asked, said, cost in totals.values_list("day", "currency", *columns):
            known, costs = spent.get(day, (0, {}))
            spent[day] = known + asked + said, costs | {currency: cost}
    return [Period(day, counts.get((day, WHOLE_DAY), {}), *spent.get(day, (0, {}))) for day in days]


def load_hours(viewer: Viewer) -> list[Period]:
    """Every hour of today."""
    day, counts = current_day(), viewer.sums
    return [Period(f"{hour}:00", counts.get((day, hour), {})) for hour in range(24)]


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
    first, open_day, known = days_shown(today())[0], past.open_day(), viewer.known
    rows = ToolUse.objects.filter(viewer.access.condition("session__")).order_by()
    used = rows.values_list("tool").annotate(all_calls=Sum("calls"), all_failures=Sum("failures"))
    if (asked := ("tools", first, open_day)) not in known:
        known[asked] = list(used.filter(day__gte=first, day__lt=open_day))
    sums: dict[str, list[int]] = {}
    for tool, *counts in (*known[asked], *used.filter(day__gte=max(first, open_day))):
        sums[tool] = [a + b for a, b in zip(sums.get(tool, (0, 0)), counts, strict=True)]
    most = sorted(sums, key=lambda tool: (-sums[tool][0], tool))[:LISTED]
    return [{"tool": one, "calls": sums[one][0], "failures": sums[one][1]} for one in most]


#: Rows of each part.
FAILURE_LIMIT, WAITING_LIMIT, SIGN_IN_LIMIT = 5, 1_000, 3
#: A heartbeat newer than this is not given an age.
JUST_NOW = timedelta(minutes=1)
#: Failures among which those of chats within reach are looked for.
NEWEST_FAILURES = 1_000


def overview_page(request: HttpRequest, site: AdminSite) -> dict[str, Any]:
    """All of the first page, of what the user may see; tables only where they are asked for."""
    viewer = find_viewer(request.user)
    state = load_state(request, site, viewer)
    days = state.get("days", [])
    charts = list_charts(load_hours(viewer), days) if days else []
    is_all_silenced = any(map(is_for_everything, viewer.silencing))
    more = load_more(viewer, days) if "more" in request.GET else {}
    return {**state, "charts": charts, "is_all_silenced": is_all_silenced, **more}


def state_fragment(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """What the page asks for again when it changes."""
    state = load_state(request, site, find_viewer(request.user))
    answer = TemplateResponse(request, "admin/dashboard/state.html", state)
    answer["Cache-Control"] = "no-store"
    return answer


def more_fragment(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """The tables under *More*."""
    viewer = find_viewer(request.user)
    days = load_days(viewer) if viewer.may("agent.view_message") else []
    return TemplateResponse(request, "admin/dashboard/more.html", load_more(viewer, days))


def see_alert(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Put one alert away, or have it shown again; then the state, or the page."""
    viewer, digest = find_viewer(request.user), request.POST.get("alert", "")
    put_away(viewer, digest, again="again" in request.POST)
    if request.headers.get("HX-Request"):
        return state_fragment(request, site)
    return redirect("admin:index")


def load_state(request: HttpRequest, site: AdminSite, viewer: Viewer) -> dict[str, Any]:
    """What changes from one moment to the next, as ``viewer`` sees it, with the ``days`` of which
    the numbers are."""
    scheme = "wss" if request.is_secure() or plain_http.is_for_https_only() else "ws"
    alerts, away = list_alerts(viewer)
    return {
        "alerts": alerts,
        "put_away": away,
        "at": timezone.now(),
        "title": _("Overview"),
        "site_title": site.site_title,
        "address": f"{scheme}://{request.get_host()}/ws/frostagent",
        "sees_bots": viewer.sees_accounts,
        "bots": [
            {
                "bot": bot,
                "nickname": nickname_of(bot),
                "client": client_words(bot),
                "url": viewer.page_of_account(bot.self_id, bot.pk),
            }
            for bot in viewer.bots
        ],
        "just_now": timezone.now() - JUST_NOW,
        **_queue(viewer),
        **_numbers(viewer),
    }


#: What an operator tries out, or asks again, is nobody's failure.
_PLAYED = Q(session__account__regex=types.ACCOUNT_PATTERN)


def _queue(viewer: Viewer) -> dict[str, Any]:
    """What waits, and what is worked on: each with a link of its own."""
    if not viewer.may("agent.view_message"):
        return {}
    reached = viewer.access.condition("session__")
    mine = Message.objects.filter(UNSETTLED, reached).exclude(_PLAYED).order_by()
    under_way = states.MessageState.WAITING, states.MessageState.RUNNING
    found = Counter(
        select_all(
            mine.filter(state=one).values_list("state")[: WAITING_LIMIT + 1] for one in under_way
        )
    )
    most = f"{WAITING_LIMIT:,}+"
    counts = {str(one): min(found[one,], WAITING_LIMIT + 1) for one in under_way}
    shown = {one: most if count > WAITING_LIMIT else str(count) for one, count in counts.items()}
    return {"sees_messages": True, **shown}


def _numbers(viewer: Viewer) -> dict[str, Any]:
    """Sums within reach. Tokens and money of all are for those who may see every chat."""
    if not viewer.may("agent.view_message"):
        return {}
    days, sees_budgets = load_days(viewer), viewer.may_see_all("agent.view_budget")
    budgets_of_all = load_uses_of({SpendKind.TOTAL: ""}, viewer.budgets) if sees_budgets else []
    return {
        "days": days,
        "sees_all": viewer.access.is_everything,
        "may_see_spending": not viewer.access.is_everything or viewer.may("agent.view_spendsum"),
        "today": days[-1],
        "period": add_up(days),
        "day_count": DAYS,
        "total_budgets": budgets_of_all,
    }


def load_more(viewer: Viewer, days: Sequence[Period]) -> dict[str, Any]:
    """The tables: the numbers of ``days``, if any are within reach, tools, failures, sign-ins."""
    numbers = {"today": days[-1], "period": add_up(days), "day_count": DAYS} if days else {}
    signed_in = SignInRecord.objects.filter(signed_in_at__isnull=False).select_related("user")
    newest = signed_in.order_by("-signed_in_at")[:SIGN_IN_LIMIT]
    return {
        **numbers,
        "is_more": True,
        "tools": load_tools(viewer) if viewer.may("agent.view_toolcall") else [],
        **_failures(viewer),
        "sign_ins": list(newest) if viewer.may_see_all("auth.view_user") else None,
    }


def _failures(viewer: Viewer) -> dict[str, Any]:
    """The last failed messages and runs; a run whose message is told of is not told of again."""
    messages: list[Message] = []
    if viewer.may("agent.view_message"):
        failed = Message.objects.filter(state=states.MessageState.FAILED).order_by("-pk")
        newest = failed if viewer.access.is_everything else _newest(failed)
        messages = list(
            newest.filter(viewer.access.condition("session__"))
            .exclude(_PLAYED)
            .select_related("session")
            .defer("segments", "raw")
            .order_by("-pk")[:FAILURE_LIMIT]
        )
    runs: list[Run] = []
    if viewer.may("agent.view_run"):
        found = Run.objects.filter(state=states.RunState.FAILED, trial_of=None).order_by("-pk")
        newest_runs = found if viewer.access.is_everything else _newest(found)
        mine = (
            newest_runs.filter(viewer.access.run_condition())
            .exclude(_PLAYED)
            .defer("notes", "final_text")
        )
        told = {message.pk for message in messages}
        runs = [run for run in mine.order_by("-pk")[:FAILURE_LIMIT] if run.message_id not in told]
    sees = viewer.may("agent.view_message") or viewer.may("agent.view_run")
    return {"sees_failures": sees, "failed_messages": messages, "failed_runs": runs}


def _newest(rows: Any) -> Any:
    """Among the newest: else everybody's failures would be walked through for those of a few."""
    keys = list(rows.values_list("pk", flat=True)[:NEWEST_FAILURES])
    return rows.model._default_manager.filter(pk__in=keys)


# Charts of the first page: each is a table of numbers, which a script draws where it can.


def list_charts(hours: Sequence[Period], days: Sequence[Period]) -> list[dict[str, Any]]:
    """Those of which there is anything to show; the first one always. ``columns`` are names of
    series with the variables of their colours, ``body`` rows of a table: names, and each number as
    it is drawn ("" for none) and as it is read."""
    received, answered = (_("received"), "--chart-1"), (_("answered"), "--chart-2")
    charts = [
        _counts(
            _("Messages"),
            {
                "received": received,
                "addressed": (_("to be answered"), "--chart-4"),
                "answered": answered,
            },
            days,
        ),
        _counts(_("Today by hour"), {"received": received, "answered": answered}, hours),
        _counts(
            _("Failures"),
            {
                "failed": (_("messages without their answer"), "--chart-3"),
                "failed_runs": (_("failed runs"), "--chart-4"),
                "unsent": (_("not sent"), "--chart-5"),
                "unknown": (_("unknown whether sent"), "--chart-1"),
            },
            days,
        ),
        _times(days),
        _chart(
            _("Tokens"),
            "bar",
            [(_("tokens"), "--chart-1")],
            [(day, [(str(day.tokens), f"{day.tokens:,}")]) for day in days],
        ),
        *_costs(days),
    ]
    return [one for index, one in enumerate(charts) if not index or not one["is_empty"]]


def _chart(
    title: str,
    kind: str,
    columns: Iterable[tuple[str, str]],
    rows: Sequence[tuple[Period, list[tuple[str, str]]]],
) -> dict[str, Any]:
    columns = list(columns)
    cells_of_row = '<td data-value="{}">{}</td>' * len(columns)
    form = f'<tr><th scope="row">{{}}</th>{cells_of_row}</tr>'
    drawn = (fill(form, one.name[-5:], *chain(*cells)) for one, cells in rows)  # without the year
    return {
        "title": title,
        "kind": kind,
        "columns": columns,
        "body": SafeString("".join(drawn)),
        "is_empty": all(value in ("", "0") for _one, cells in rows for value, _words in cells),
    }


def _counts(
    title: str, series: Mapping[str, tuple[str, str]], periods: Sequence[Period]
) -> dict[str, Any]:
    counts = [(one, [one.counts.get(name, 0) for name in series]) for one in periods]
    rows = [(one, [(str(count), f"{count:,}") for count in found]) for one, found in counts]
    return _chart(title, "bar", series.values(), rows)


def _times(days: Sequence[Period]) -> dict[str, Any]:
    """Approximate, for they come from columns."""
    names = [_("half of the answers within"), _("95 percent of the answers within")]
    rows = [
        (
            day,
            [
                (_seconds(percentile(day.counts, 0.5)), day.p50_words),
                (_seconds(percentile(day.counts, 0.95)), day.p95_words),
            ],
        )
        for day in days
    ]
    colours = ("--chart-2", "--chart-3")
    return _chart(_("Time to the answer"), "line", zip(names, colours, strict=True), rows)


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{min(seconds, float(ANSWER_SECONDS[-1])):.1f}"


def _costs(days: Sequence[Period]) -> list[dict[str, Any]]:
    """One for each currency: they cannot be added."""
    spent = {(day.name, one): cost for day in days for one, cost in day.costs.items()}
    return [
        _chart(
            _("Cost (%s)") % currency,
            "bar",
            [(currency, "--chart-2")],
            [
                (day, [(f"{cost / budgets.NANO:g}", cost_words(cost, currency))])
                for day in days
                for cost in (spent.get((day.name, currency), 0),)
            ],
        )
        for currency in sorted({one for (_day, one), cost in spent.items() if one and cost})
    ]
