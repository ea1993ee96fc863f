"""The first page: what needs somebody, the state of the moment, today, and the last days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from agent.domain import budgets, states, types
from agent.models import UNSETTLED, Message, Run
from agent.models.activity import ANSWER_SECONDS
from agent.record.settings.chat_manners import find_everywhere
from frostproject.cockpit.alerts import Viewer, find_viewer, sort_alerts
from frostproject.cockpit.chat_alerts import chat_alerts, find_bots
from frostproject.cockpit.figures import (
    DAYS,
    Period,
    add_up,
    load_days,
    load_hours,
    load_spenders,
    load_tools,
    load_total_budgets,
)
from frostproject.cockpit.system_alerts import system_alerts
from frostproject.models import SignInRecord
from frostproject.signin import plain_http
from onebot.admin.names import client_words, nickname_of

#: Rows of each part.
FAILURE_LIMIT, WAITING_LIMIT, SIGN_IN_LIMIT = 5, 1_000, 3
#: A heartbeat newer than this is not given an age.
JUST_NOW = timedelta(minutes=1)
#: Failures among which those of chats within reach are looked for.
NEWEST_FAILURES = 1_000


def state_fragment(request: HttpRequest, site: AdminSite) -> HttpResponse:
    """Alerts and the state of the moment, which the page asks for again when they change."""
    answer = TemplateResponse(request, "admin/dashboard/state.html", load_state(request))
    answer["Cache-Control"] = "no-store"
    return answer


def load_state(request: HttpRequest) -> dict[str, Any]:
    """What changes from one moment to the next."""
    viewer = find_viewer(request.user)
    scheme = "wss" if request.is_secure() or plain_http.is_for_https_only() else "ws"
    return {
        "alerts": sort_alerts(chain(chat_alerts(viewer), system_alerts(viewer))),
        "at": timezone.now(),
        "address": f"{scheme}://{request.get_host()}/ws/frostagent",
        "sees_bots": viewer.sees_accounts,
        "bots": [
            {
                "bot": bot,
                "nickname": nickname_of(bot),
                "client": client_words(bot),
                "url": viewer.page_of_account(bot.self_id, bot.pk),
            }
            for bot in find_bots(viewer)
        ],
        "just_now": timezone.now() - JUST_NOW,
        **_queue(viewer),
    }


def load_overview(request: HttpRequest) -> dict[str, Any]:
    """All of the page, of what the user may see."""
    viewer = find_viewer(request.user)
    return {
        **load_state(request),
        "is_all_silenced": any(row.is_silencing for row in find_everywhere()),
        **_numbers(viewer),
        **_failures(viewer),
        **_sign_ins(viewer),
    }


#: What an operator tries out, or asks again, is nobody's failure.
_PLAYED = Q(session__account__regex=types.ACCOUNT_PATTERN)


def _queue(viewer: Viewer) -> dict[str, Any]:
    """What waits, and what is worked on: each with a link of its own."""
    if not viewer.may("agent.view_message"):
        return {}
    mine = Message.objects.filter(UNSETTLED, viewer.access.condition("session__")).order_by()
    mine = mine.exclude(_PLAYED)
    return {
        "sees_messages": True,
        "waiting": _count(mine.filter(state=states.MessageState.WAITING)),
        "running": _count(mine.filter(state=states.MessageState.RUNNING)),
    }


def _count(rows: Any) -> str:
    count = rows[: WAITING_LIMIT + 1].count()
    return f"{WAITING_LIMIT:,}+" if count > WAITING_LIMIT else str(count)


def _numbers(viewer: Viewer) -> dict[str, Any]:
    """Sums within reach. Tokens and money of all, of models and of people are for those who may see
    every chat."""
    if not viewer.may("agent.view_message"):
        return {}
    days = load_days(viewer)
    numbers = {
        "sees_numbers": True,
        "sees_all": viewer.access.is_everything,
        "today": days[-1],
        "period": add_up(days),
        "total_budgets": load_total_budgets(viewer),
        "charts": list_charts(load_hours(viewer), days),
        "day_count": DAYS,
        "tools": load_tools(viewer) if viewer.may("agent.view_toolcall") else [],
    }
    if viewer.may("agent.view_spendsum") or not viewer.access.is_everything:
        kinds = [(_("By chat"), budgets.SpendKind.CHAT)]
        if viewer.access.is_everything:
            kinds = [
                (_("By model"), budgets.SpendKind.ENDPOINT),
                *kinds,
                (_("By person"), budgets.SpendKind.PERSON),
            ]
        numbers["spenders"] = [(title, load_spenders(viewer, kind)) for title, kind in kinds]
    return numbers


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


def _sign_ins(viewer: Viewer) -> dict[str, Any]:
    if not viewer.may_see_all("auth.view_user"):
        return {}
    signed_in = SignInRecord.objects.filter(signed_in_at__isnull=False).select_related("user")
    return {"sign_ins": list(signed_in.order_by("-signed_in_at")[:SIGN_IN_LIMIT])}


# Charts of the first page: each is a table of numbers, which a script draws where it can.


@dataclass(frozen=True, slots=True)
class Cell:
    """One number: as it is drawn ("" for none), and as it is read."""

    value: str
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """``columns`` are names of series with the variables of their colours."""

    title: str
    kind: str
    columns: list[tuple[str, str]]
    rows: list[tuple[str, list[Cell]]]

    @property
    def is_empty(self) -> bool:
        return all(cell.value in ("", "0") for _name, cells in self.rows for cell in cells)


def list_charts(hours: Sequence[Period], days: Sequence[Period]) -> list[Chart]:
    """Those of which there is anything to show; the first one always."""
    charts = [
        _counts(
            _("Messages of today, by hour"),
            [(_("received"), "--chart-1", "received"), (_("answered"), "--chart-2", "answered")],
            hours,
        ),
        _counts(
            _("Messages"),
            [
                (_("received"), "--chart-1", "received"),
                (_("to be answered"), "--chart-4", "addressed"),
                (_("answered"), "--chart-2", "answered"),
            ],
            days,
        ),
        _counts(
            _("Failures"),
            [
                (_("messages without their answer"), "--chart-3", "failed"),
                (_("failed runs"), "--chart-4", "failed_runs"),
                (_("not sent"), "--chart-5", "unsent"),
                (_("unknown whether sent"), "--chart-1", "unknown"),
            ],
            days,
        ),
        _times(days),
        Chart(
            _("Tokens"),
            "bar",
            [(_("tokens"), "--chart-1")],
            [(_short(day.name), [Cell(str(day.tokens), f"{day.tokens:,}")]) for day in days],
        ),
        *_costs(days),
    ]
    return [chart for index, chart in enumerate(charts) if not index or not chart.is_empty]


def _counts(title: str, series: Sequence[tuple[str, str, str]], periods: Sequence[Period]) -> Chart:
    rows = []
    for one in periods:
        counts = [one.counts.get(name, 0) for _label, _colour, name in series]
        rows.append((_short(one.name), [Cell(str(count), f"{count:,}") for count in counts]))
    return Chart(title, "bar", [(label, colour) for label, colour, _name in series], rows)


def _times(days: Sequence[Period]) -> Chart:
    """Approximate, for they come from columns."""
    rows = [
        (
            _short(day.name),
            [Cell(_seconds(day.p50), day.p50_words), Cell(_seconds(day.p95), day.p95_words)],
        )
        for day in days
    ]
    columns = [
        (_("half of the answers within"), "--chart-2"),
        (_("95 percent of the answers within"), "--chart-3"),
    ]
    return Chart(_("Seconds to the answer (approximate)"), "line", columns, rows)


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{min(seconds, float(ANSWER_SECONDS[-1])):.1f}"


def _costs(days: Sequence[Period]) -> list[Chart]:
    """One for each currency: they cannot be added."""
    currencies = sorted({one for day in days for one, cost in day.costs.items() if one and cost})
    return [
        Chart(
            _("Cost (%s)") % currency,
            "bar",
            [(currency, "--chart-2")],
            [
                (
                    _short(day.name),
                    [
                        Cell(
                            f"{day.costs.get(currency, 0) / budgets.NANO:g}",
                            budgets.cost_words(day.costs.get(currency, 0), currency),
                        )
                    ],
                )
                for day in days
            ],
        )
        for currency in currencies
    ]


def _short(name: str) -> str:
    """A day without its year."""
    return name[5:] if len(name) == len("2026-01-31") else name
