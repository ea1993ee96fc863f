"""What an operator should look at now: in words, with what to do and where."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import F, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from agent.domain.budgets import BudgetAction, BudgetTerms, SpendKind, period_start
from agent.models import (
    BudgetStop,
    EndpointStatus,
    ModelEndpoint,
    ServerProcess,
)
from agent.pages.endpoints import is_left_over
from agent.pages.error_words import explain_error
from agent.record.chats.subject_names import find_subjects
from agent.record.ground.clock_skew import find_clock_skew
from agent.record.sums.budgets import BudgetUse, load_budget_uses, load_uses
from agent.runtime import serving
from agent.runtime.daily_backup import find_failure
from frostproject.cockpit import chat_alerts
from frostproject.cockpit.alert import BAD, NOTABLE, Alert, AlertAct, clean, moment
from frostproject.cockpit.viewer import Viewer, link
from frostproject.models import FailedSignIns, SeenAlert
from tools.admin.declared import LOOK_NEEDED
from tools.local_time import current_day, first_of_day
from tools.mcp.models import McpServer, McpServerStatus
from tools.mcp.settings import may_run_commands
from tools.models import ToolConfig
from tools.plugins.models import Plugin, PluginStatus
from tools.text import error_words, readable
from tools.version import VERSION

#: Percent of what may be spent from which on it is told of.
NEARLY = 80

# Alerts of budgets that turn somebody away, or soon will: of all, and to owners of chats of those
# of their chats.

#: Budgets that are looked at, and of each the subjects that are told of.
SHOWN_BUDGETS, SUBJECTS = 10, 3


def _budgets(viewer: Viewer) -> Iterator[Alert]:
    places: list[str] | None = None
    if not viewer.access.is_everything:
        places = viewer.own_places() if viewer.may("agent.view_chatsession") else []
    elif not viewer.may("agent.view_budget"):
        return
    shown = _shown_budgets(viewer.budgets, places)
    single = [one for one in shown if one.subject or one.kind == SpendKind.TOTAL]
    uses = {use.terms.pk: [use] for use in load_uses([(one, one.subject) for one in single])}
    for terms in shown:
        found = uses.get(terms.pk) or load_budget_uses(terms, places)
        for use in [use for use in found if use.shortage or use.percent >= NEARLY][:SUBJECTS]:
            yield _alert(viewer, use)


def _shown_budgets(found: tuple[BudgetTerms, ...], places: list[str] | None) -> list[BudgetTerms]:
    """That of the environment first, then those that stopped somebody; where ``places`` are given,
    those of chats among them."""
    if places is not None:
        found = tuple(
            terms
            for terms in found
            if terms.kind == SpendKind.CHAT and (not terms.subject or terms.subject in places)
        )
    if len(found) <= SHOWN_BUDGETS:
        return list(found)
    stopped = set(BudgetStop.objects.values_list("budget", flat=True).distinct())
    first = sorted(found, key=lambda terms: (not terms.environment, terms.pk not in stopped))
    return first[:SHOWN_BUDGETS]


#: What is said of a budget: what is the matter, and whether it is of somebody in particular.
_STATES = {
    ("near", True): gettext_lazy("The budget “%(name)s” of %(whom)s is used to %(percent)d %%."),
    ("near", False): gettext_lazy("The budget “%(name)s” is used to %(percent)d %%."),
    ("replaced", True): gettext_lazy(
        "The budget “%(name)s” of %(whom)s: another endpoint answers, %(shortage)s."
    ),
    ("replaced", False): gettext_lazy(
        "The budget “%(name)s”: another endpoint answers, %(shortage)s."
    ),
    ("stopped", True): gettext_lazy("The budget “%(name)s” of %(whom)s is stopped: %(shortage)s."),
    ("stopped", False): gettext_lazy("The budget “%(name)s” is stopped: %(shortage)s."),
}


def _alert(viewer: Viewer, use: BudgetUse) -> Alert:
    terms, is_own = use.terms, not viewer.access.is_everything
    named = find_subjects(terms.kind, [use.subject])[use.subject] if use.subject else None
    is_replaced = terms.action is BudgetAction.CHEAPER
    state = "near" if use.shortage is None else "replaced" if is_replaced else "stopped"
    words = {
        "name": readable.escape_invisible_chars(terms.label),
        "whom": named.name if named else "",
        "percent": use.percent,
        "shortage": use.shortage.words if use.shortage else "",
    }
    url = f"{link('spending')}#budget-{terms.pk}"
    advice = _("Raise it, or wait until its day or month is over.")
    may_change = not is_own and viewer.may("agent.change_budget") and not terms.environment
    acts = (AlertAct(_("Raise it"), url),) if may_change else ()
    if is_own:
        pk = named.pk if named else None
        url = "" if pk is None else link("agent_chatsession_change", pk)
        advice = _("It ends with its day or month. Who runs the bot can raise it.")
    if terms.environment:
        advice = _(
            "When they are used up, only owners are answered until midnight. More are allowed in "
            ".env; a budget stops single chats or people earlier."
        )
        url = link("agent_budget_changelist")  # who or what spends it
    begun = period_start(terms.period, first_of_day(current_day()))
    facts = (terms.pk, use.subject, begun, terms.limit, use.shortage is not None, is_replaced)
    text, level = _STATES[state, bool(use.subject)] % words, BAD if state == "stopped" else NOTABLE
    found = Alert("budget", text, advice, url, level, facts=facts, acts=acts, about=terms.pk)
    return replace(found, plain=str(_STATES[state, False] % words))


#: Rows of each kind that are told of by themselves.
SHOWN = 10
#: Failed sign-ins of a day that are more than somebody's slip.
MANY_FAILURES = 5
#: Bytes below which messages may soon not be recorded any more.
LEAST_FREE = 200 * 2**20


def _outage(viewer: Viewer) -> Iterator[Alert]:
    """Every page has a banner for it; here it says why nothing else changes."""
    found = serving.get_serving()
    if outage := found.outage() if found else None:
        yield Alert(
            "outage",
            _("The database cannot be written since %(since)s: %(reason)s")
            % {"since": moment(outage.since), "reason": _(outage.reason)},
            _("Messages wait until it can be written again. See to disk and database."),
            level=BAD,
            facts=(outage.since,),
        )


def _clock(viewer: Viewer) -> Iterator[Alert]:
    if skew := find_clock_skew():
        yield Alert(
            "clock",
            _(
                "Messages are %(minutes)d minutes old when they come, and are not answered: the "
                "clock of this machine seems to be ahead."
            )
            % {"minutes": int(skew.total_seconds() // 60)},
            _("Set the clock by NTP."),
            link("agent_message_changelist", query="reason__exact=too_old"),
            BAD,
        )


def _models(viewer: Viewer) -> Iterator[Alert]:
    own = ModelEndpoint.objects.filter(enabled=True, can_chat=True, environment="")
    may_add = not settings.UPSTREAM_ENDPOINT and viewer.may("agent.add_modelendpoint")
    if may_add and not own.exists():
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
        yield Alert(
            "model",
            _("The model endpoint “%(name)s” fails, since %(at)s: %(error)s")
            % {
                "name": clean(status.endpoint.name),
                "at": moment(status.error_at),
                "error": clean(told.sentence),
            },
            clean(told.advice),
            link("agent_modelendpoint_change", status.endpoint_id),
            BAD,
            facts=(status.endpoint_id, status.error, status.answered_at),
            about=status.endpoint_id,
            plain=_("The model endpoint “%s” fails.") % clean(status.endpoint.name),
        )


def _mcp(viewer: Viewer) -> Iterator[Alert]:
    state = McpServerStatus.ConnectionState
    dead = McpServerStatus.objects.filter(
        state__in=(state.WAITING, state.STOPPED),
        server__enabled=True,
        process_id__in=ServerProcess.objects.values("pk"),
    )
    rows = dead.select_related("server").order_by("server_id", "-seen_at")[: SHOWN * 2]
    newest: dict[int, McpServerStatus] = {}
    for row in rows:
        newest.setdefault(row.server_id, row)
    for status in newest.values():
        server, told = status.server, explain_error(status.error)
        # a server that is a program is theirs alone who may run commands
        is_free = server.transport != McpServer.Transport.STDIO or may_run_commands(viewer.user)
        again = AlertAct(_("Reconnect"), link("tools_mcpserver_reconnect", server.pk), {})
        text, plain = (
            _("The MCP server “%(name)s” is not connected: %(error)s"),
            _("The MCP server “%s” is not connected."),
        )
        if status.state == state.STOPPED:
            text = _("The MCP server “%(name)s” was given up: %(error)s")
        yield Alert(
            "mcp",
            text % {"name": clean(server.name), "error": clean(told.sentence)[:300]},
            clean(told.advice) or _("See its page; there it can be connected again."),
            link("tools_mcpserver_change", server.pk),
            BAD,
            facts=(server.pk, status.state, status.error),
            about=server.pk,
            plain=plain % clean(server.name),
            acts=(again,) if is_free and viewer.may("tools.change_mcpserver") else (),
        )


def _plugins(viewer: Viewer) -> Iterator[Alert]:
    broken = PluginStatus.objects.filter(
        state=PluginStatus.PluginState.BROKEN,
        plugin__enabled=True,
        process_id__in=ServerProcess.objects.values("pk"),
    )
    for plugin in Plugin.objects.filter(
        Q(pk__in=broken.values("plugin")) | ~Q(fault=""), enabled=True
    ).order_by("pk")[:SHOWN]:
        yield Alert(
            "plugin",
            (
                _("The plugin “%(name)s” cannot run: %(fault)s")
                if plugin.fault
                else _("The plugin “%(name)s” was given up after repeated crashes.")
            )
            % {
                "name": clean(plugin.plugin_id or plugin.folder),
                "fault": clean(error_words.retell(plugin.fault)),
            },
            _("Its page has its last words, and a button to load it again."),
            link("tools_plugin_change", plugin.pk),
            BAD,
            facts=(plugin.pk, plugin.fault),
            about=plugin.pk,
            plain=_("The plugin “%s” cannot run.") % clean(plugin.plugin_id or plugin.folder),
        )


def _tools(viewer: Viewer) -> Iterator[Alert]:
    if count := ToolConfig.objects.filter(LOOK_NEEDED).order_by().count():
        yield Alert(
            "new_tools",
            ngettext(
                "%(count)s tool is new or has changed.",
                "%(count)s tools are new or have changed.",
                count,
            )
            % {"count": count},
            _("Only owners of the bot may use them until somebody has looked."),
            link("tools_toolconfig_changelist", query="look=open"),
            facts=(count,),
        )


def _sign_ins(viewer: Viewer) -> Iterator[Alert]:
    lately = FailedSignIns.objects.filter(last_at__gt=timezone.now() - timedelta(days=1))
    count = lately.aggregate(count=Sum("count"))["count"] or 0
    if count >= MANY_FAILURES:
        last = lately.order_by("-hour").first()
        yield Alert(
            "sign_ins",
            _("%(count)d failed sign-ins in the last 24 hours, the last from %(address)s.")
            % {"count": count, "address": (last.last_address if last else "") or "-"},
            _("If that was not one of you: are the passwords long, and is the second factor on?"),
            link("second_factor"),
            facts=(last.hour, last.count) if last else (),
        )


def _disk(viewer: Viewer) -> Iterator[Alert]:
    try:
        free = shutil.disk_usage(settings.DATA_DIR).free
    except OSError:
        return
    if free < max(LEAST_FREE, settings.MEDIA_FREE_BYTES):
        advice, level = _("Make room: pictures, voice and files are not fetched."), NOTABLE
        if free < LEAST_FREE:
            advice, level = _("Make room: without it, messages cannot be recorded."), BAD
        text = _("Only %d MiB are free for the data folder.") % (free >> 20)
        yield Alert("disk", text, advice, level=level, facts=(level,))


def _backup(viewer: Viewer) -> Iterator[Alert]:
    if settings.DAILY_BACKUP and (failure := find_failure()):
        at, said = failure
        text = _("The daily backup failed, at %(at)s: %(error)s")
        words = {"at": moment(datetime.fromtimestamp(at, UTC)), "error": clean(said)}
        advice = _("It is tried again every hour. See to the disk, and to the log.")
        url = link("agent_installation_changelist")
        plain = _("The daily backup failed.")
        yield Alert("backup", text % words, advice, url, BAD, facts=(at,), plain=plain)


def _version(viewer: Viewer) -> Iterator[Alert]:
    if settings.VERSION_URL:
        from agent.runtime.newer_version import find_newer

        if newest := find_newer():
            text = _("Version %(newest)s is out; this is %(version)s.")
            advice = _("Read in its changes what to do first, then: make upgrade")
            words = {"newest": newest, "version": VERSION}
            yield Alert("version", text % words, advice, facts=(newest,))


#: Each with the permission that it takes, "" where it looks for itself, and whether it is for those
#: alone who may see all; else it tells of what is within reach.
PARTS = (
    (chat_alerts.find_accounts, "", False),
    (chat_alerts.find_sends, "agent.view_message", False),
    (chat_alerts.find_approvals, "agent.view_approval", False),
    (chat_alerts.find_requests, "agent.view_joinrequest", False),
    (chat_alerts.find_untold, "agent.view_message", False),
    (chat_alerts.find_silence, "", False),
    (chat_alerts.find_taken_over, "agent.view_chatsession", False),
    (chat_alerts.find_paused, "agent.view_chatsession", False),
    (_outage, "", True),
    (_clock, "agent.view_message", True),
    (_models, "agent.view_modelendpoint", True),
    (_budgets, "", False),
    (_mcp, "tools.view_mcpserver", True),
    (_plugins, "tools.view_plugin", True),
    (_tools, "tools.view_toolconfig", True),
    (_sign_ins, "auth.view_user", True),
    (_disk, "", True),
    (_backup, "agent.view_installation", True),
    (_version, "agent.view_installation", True),
)


def find_alerts(viewer: Viewer) -> Iterator[Alert]:
    for part, needed, of_all in PARTS:
        if (viewer.access.is_everything or not of_all) and (not needed or viewer.may(needed)):
            yield from part(viewer)


def list_alerts(viewer: Viewer) -> tuple[list[Alert], list[Alert]]:
    """All within reach, the worst first, and what of it the viewer has put away. What was put away
    and is over is forgotten: it may come again."""
    alerts = sorted(find_alerts(viewer), key=lambda one: one.level != BAD)
    rows = SeenAlert.objects.filter(user=viewer.user.pk)
    seen = set(rows.values_list("digest", flat=True))
    is_writable = all(one.kind != "outage" for one in alerts)
    if is_writable and (over := seen - {one.digest for one in alerts}):
        rows.filter(digest__in=over).delete()
    away = [one for one in alerts if one.digest in seen]
    return [one for one in alerts if one.digest not in seen], away


def put_away(viewer: Viewer, digest: str, *, again: bool = False) -> None:
    """Tell the viewer no more of an alert, as long as it says the same, or ``again``. One that is
    not within reach, or says something else by now, is left alone."""
    if again:
        SeenAlert.objects.filter(user=viewer.user.pk, digest=digest).delete()
    elif any(one.digest == digest for one in find_alerts(viewer)):
        SeenAlert.objects.get_or_create(user=viewer.user, digest=digest)
