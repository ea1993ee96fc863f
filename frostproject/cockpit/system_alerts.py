"""Alerts of what all chats have in common: models, tools, budgets, sign-ins, the machine."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agent.admin.endpoint_state import is_left_over
from agent.admin.error_words import explain_error
from agent.admin.subjects import name_subjects
from agent.domain.budgets import SpendKind
from agent.models import EndpointStatus, ModelEndpoint, ServerProcess
from agent.record.budgets import load_budgets, most_spent
from agent.record.spendings import SumRange, current_day, load_spent
from agent.runtime import serving
from frostproject.cockpit.alerts import BAD, Alert, Viewer, link
from frostproject.cockpit.chat_alerts import moment
from frostproject.models import FailedSignIns
from tools.admin.declaration_review import LOOK_NEEDED
from tools.mcp.models import McpServerStatus
from tools.models import ToolConfig
from tools.plugins.models import Plugin, PluginStatus
from tools.text.visible import escape_invisible_chars

#: Rows of each kind that are told of by themselves.
SHOWN = 10
#: Failed sign-ins of a day that are more than somebody's slip.
MANY_FAILURES = 5
#: Percent of a budget from which on it is told of.
NEARLY = 80
#: Bytes below which messages may soon not be recorded any more.
LEAST_FREE = 200 * 2**20


def system_alerts(viewer: Viewer) -> Iterator[Alert]:
    yield from _outage(viewer)
    yield from _models(viewer)
    yield from _budgets(viewer)
    yield from _mcp(viewer)
    yield from _plugins(viewer)
    yield from _tools(viewer)
    yield from _sign_ins(viewer)
    yield from _disk(viewer)


def _outage(viewer: Viewer) -> Iterator[Alert]:
    """Every page has a banner for it; here it says why nothing else changes."""
    found = serving.get_serving()
    outage = found.outage() if found and viewer.access.is_everything else None
    if outage:
        text = _("The database cannot be written since %(since)s: %(reason)s")
        words = {"since": moment(outage.since), "reason": _(outage.reason)}
        advice = _("Messages wait until it can be written again. See to disk and database.")
        yield Alert("outage", text % words, advice, level=BAD)


def _models(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("agent.view_modelendpoint"):
        return
    if not settings.UPSTREAM_ENDPOINT and viewer.may("agent.add_modelendpoint"):
        rows = ModelEndpoint.objects.filter(enabled=True, can_chat=True, environment="")
        if not rows.exists():
            yield Alert(
                "no-model",
                _("Only the demo model answers. It understands nothing and costs nothing."),
                _("Choose a provider, paste a key, and press Test."),
                link("agent_modelendpoint_add"),
            )
    has_failed = Q(error_at__gt=F("answered_at")) | Q(answered_at=None, error_at__isnull=False)
    rests = Q(rests_until__gt=timezone.now())
    failing = EndpointStatus.objects.filter(has_failed | rests, endpoint__enabled=True)
    for status in failing.select_related("endpoint").order_by("-error_at")[:SHOWN]:
        if is_left_over(status.endpoint):
            continue
        told = explain_error(status.error)
        text = _("The model endpoint “%(name)s” fails, since %(at)s: %(error)s")
        words = {
            "name": _clean(status.endpoint.name),
            "at": moment(status.error_at),
            "error": _clean(told.sentence),
        }
        url = link("agent_modelendpoint_change", status.endpoint_id)
        yield Alert("model", text % words, _clean(told.advice), url, BAD)


def _budgets(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("agent.view_budget"):
        return
    most = settings.TOKENS_PER_DAY
    spent = load_spent(SumRange(SpendKind.TOTAL, "", current_day())).tokens if most else 0
    if most and spent * 100 >= most * NEARLY:
        percent = spent * 100 // most
        text = _("%(percent)d %% of the tokens of the day (TOKENS_PER_DAY) are used.")
        advice = _("When they are used up, only owners are answered until midnight.")
        yield Alert("tokens", text % {"percent": percent}, advice, level=_budget_level(percent))
    for terms in load_budgets()[:SHOWN]:
        subject, amount = most_spent(terms)
        percent = terms.used_percent(amount)
        if percent < NEARLY:
            continue
        whom = name_subjects(terms.kind, [subject]).get(subject, "") if subject else ""
        text = (
            _("The budget “%(name)s” of %(whom)s is used to %(percent)d %%.")
            if whom
            else _("The budget “%(name)s” is used to %(percent)d %%.")
        )
        words: dict[str, Any] = {"name": _clean(terms.name), "whom": whom, "percent": percent}
        url = link("agent_budget_change", terms.pk)
        advice = _("Raise it, or wait until its day or month is over.")
        yield Alert("budget", text % words, advice, url, _budget_level(percent))


def _budget_level(percent: int) -> str:
    return BAD if percent >= 100 else "notable"


def _mcp(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("tools.view_mcpserver"):
        return
    state = McpServerStatus.ConnectionState
    dead = McpServerStatus.objects.filter(
        state__in=(state.WAITING, state.STOPPED),
        server__enabled=True,
        process_id__in=ServerProcess.objects.values("pk"),
    )
    seen: set[int] = set()
    for status in dead.select_related("server").order_by("server_id", "-seen_at")[: SHOWN * 2]:
        if status.server_id in seen:
            continue
        seen.add(status.server_id)
        told = explain_error(status.error)
        words = {"name": _clean(status.server.name), "error": _clean(told.sentence)[:300]}
        text = _("The MCP server “%(name)s” is not connected: %(error)s")
        if status.state == state.STOPPED:
            text = _("The MCP server “%(name)s” was given up: %(error)s")
        advice = _clean(told.advice) or _("See its page; there it can be connected again.")
        url = link("tools_mcpserver_change", status.server_id)
        yield Alert("mcp", text % words, advice, url, BAD)


def _plugins(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("tools.view_plugin"):
        return
    broken = PluginStatus.objects.filter(
        state=PluginStatus.PluginState.BROKEN,
        plugin__enabled=True,
        process_id__in=ServerProcess.objects.values("pk"),
    )
    faulty = Plugin.objects.filter(
        Q(pk__in=broken.values("plugin")) | ~Q(fault=""), enabled=True
    ).order_by("pk")
    for plugin in faulty[:SHOWN]:
        words = {"name": _clean(plugin.plugin_id or plugin.folder), "fault": _clean(plugin.fault)}
        text = (
            _("The plugin “%(name)s” cannot run: %(fault)s")
            if plugin.fault
            else _("The plugin “%(name)s” was given up after repeated crashes.")
        )
        advice = _("Its page has its last words, and a button to load it again.")
        yield Alert("plugin", text % words, advice, link("tools_plugin_change", plugin.pk), BAD)


def _tools(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("tools.view_toolconfig"):
        return
    if count := ToolConfig.objects.filter(LOOK_NEEDED).order_by().count():
        text = ngettext(
            "%(count)s tool is new or has changed.",
            "%(count)s tools are new or have changed.",
            count,
        )
        advice = _("Only owners of the bot may use them until somebody has looked.")
        url = link("tools_toolconfig_changelist", query="look=open")
        yield Alert("new_tools", text % {"count": count}, advice, url)


def _sign_ins(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("auth.view_user"):
        return
    lately = FailedSignIns.objects.filter(last_at__gt=timezone.now() - timedelta(days=1))
    count = lately.aggregate(count=Sum("count"))["count"] or 0
    if count >= MANY_FAILURES:
        last = lately.order_by("-hour").first()
        text = _("%(count)d failed sign-ins in the last 24 hours, the last from %(address)s.")
        words = {"count": count, "address": (last.last_address if last else "") or "-"}
        yield Alert(
            "sign_ins",
            text % words,
            _("If that was not one of you: are the passwords long, and is the second factor on?"),
            link("second_factor"),
        )


def _disk(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.access.is_everything:
        return
    try:
        free = shutil.disk_usage(settings.DATA_DIR).free
    except OSError:
        return
    if free < max(LEAST_FREE, settings.MEDIA_FREE_BYTES):
        text = _("Only %d MiB are free for the data folder.") % (free >> 20)
        is_urgent = free < LEAST_FREE
        advice = (
            _("Make room: without it, messages cannot be recorded.")
            if is_urgent
            else _("Make room: pictures, voice and files are not fetched.")
        )
        yield Alert("disk", text, advice, level=BAD if is_urgent else "notable")


def _clean(text: str) -> str:
    return escape_invisible_chars(text[:400])
