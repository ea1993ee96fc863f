"""What an operator should look at now: in words, with what to do and where."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, Sum
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.translation import gettext as _, ngettext

from agent.access.chat_access import ChatAccess, find_access
from agent.domain import states, types
from agent.domain.budgets import BudgetAction, BudgetTerms, SpendKind
from agent.models import (
    ActivitySum,
    Approval,
    BudgetStop,
    ChatSession,
    EndpointStatus,
    Manners,
    Message,
    ModelEndpoint,
    ServerProcess,
)
from agent.models.activity import WHOLE_DAY
from agent.pages.endpoints import is_left_over
from agent.pages.error_words import explain_error
from agent.record.chats.subject_names import find_subjects
from agent.record.ground.clock_skew import find_clock_skew
from agent.record.runs.deferred_calls import find_untold
from agent.record.settings import chat_manners, manners
from agent.record.sums.activity import hour_of
from agent.record.sums.budgets import BudgetUse, load_budget_uses, load_budgets
from agent.record.waiting import hand_messages, pauses, take_overs
from agent.runtime import serving
from frostproject.models import FailedSignIns
from onebot.admin.bots import account_words
from onebot.models import Bot
from tools.admin.declared import LOOK_NEEDED
from tools.mcp.models import McpServerStatus
from tools.models import ToolConfig
from tools.plugins.models import Plugin, PluginStatus
from tools.text import error_words, readable

BAD, NOTABLE = "bad", "notable"
#: Percent of what may be spent from which on it is told of.
NEARLY = 80
#: Own chats, those with the newest messages, whose sums are looked at.
MOST_OWN = 300


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that needs somebody. ``advice`` says what to do, ``url`` leads to where it is done
    ("" for nowhere); where it is to be done several times, ``others`` is another way there."""

    kind: str
    text: str
    advice: str = ""
    url: str = ""
    level: str = NOTABLE
    #: A text and its address.
    others: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Viewer:
    """Who looks, and which chats are within reach."""

    user: Any
    access: ChatAccess

    @cached_property
    def budgets(self) -> tuple[BudgetTerms, ...]:
        """Those that are enabled, loaded once."""
        return load_budgets()

    def may(self, permission: str) -> bool:
        return bool(self.user.has_perm(permission))

    def may_see_all(self, permission: str) -> bool:
        """Of what belongs to no chat in particular."""
        return self.access.is_everything and self.may(permission)

    def own_places(self) -> list[str]:
        """The chats within reach as they are written in sums."""
        own = self.access.sessions().order_by("-last_message_at")[:MOST_OWN]
        columns = own.values_list("platform", "account", "kind", "peer_id")
        return [":".join(parts) for parts in columns]

    @property
    def sees_accounts(self) -> bool:
        """Whether accounts are connected: who runs a chat has to know it of his own."""
        return self.may("onebot.view_bot") or not self.access.is_everything

    def page_of_account(self, account: str, pk: int) -> str:
        """The page of a bot, "" where it is not for this user."""
        is_whole = self.access.is_everything or account in self.access.accounts
        return link("onebot_bot_change", pk) if is_whole and self.may("onebot.view_bot") else ""


def find_viewer(user: Any) -> Viewer:
    return Viewer(user, find_access(user))


def link(name: str, *arguments: object, query: str = "") -> str:
    """The address of a page of the admin."""
    return reverse(f"admin:{name}", args=arguments) + (f"?{query}" if query else "")


#: Accounts that are looked at, and of which each is told of by itself.
MOST_BOTS = 200
#: Rows that are counted, at most, and own chats that are looked at.
COUNTED, MOST_SILENT = 1_000, 200
#: Outcomes of calls that are told of by themselves.
UNTOLD = 5


def find_bots(viewer: Viewer) -> list[Bot]:
    """The accounts within reach, and those of single chats within reach; without playgrounds."""
    if not viewer.sees_accounts:
        return []
    rows = Bot.objects.order_by("self_id")
    if not viewer.access.is_everything:
        own = viewer.access.accounts | {account for account, _chat in viewer.access.chats}
        rows = rows.filter(self_id__in=sorted(own))
    return [bot for bot in rows[:MOST_BOTS] if not types.is_playground(bot.self_id)]


def moment(at: datetime | None) -> str:
    return formats.date_format(timezone.localtime(at), "m-d H:i") if at else ""


def _accounts(viewer: Viewer) -> Iterator[Alert]:
    """Every account that was ever here and is not: it stays until its row is deleted."""
    for bot in find_bots(viewer):
        url = viewer.page_of_account(bot.self_id, bot.pk)
        if not bot.online:
            since = moment(bot.disconnected_at or bot.last_heartbeat_at)
            text = (
                _("Account %(account)s is not connected, since %(since)s.")
                if since
                else _("Account %(account)s is not connected.")
            )
            yield Alert(
                "disconnected",
                text % {"account": account_words(bot), "since": since},
                _(
                    "Start its OneBot client and see that the address and the token are right. An "
                    "account that is retired is deleted on its page."
                ),
                url,
                BAD,
            )
        elif bot.account_online is False:
            yield Alert(
                "account_offline",
                _("Account %s is offline: its client is connected, but not signed in to QQ.")
                % account_words(bot),
                _("Sign in to QQ in the OneBot client."),
                url,
                BAD,
            )


def _sends(viewer: Viewer) -> Iterator[Alert]:
    """What was sent in the last day, may have arrived or not, and was not sent again."""
    since = timezone.now() - timedelta(days=1)
    day, hour = hour_of(since)
    rows = ActivitySum.objects.filter(viewer.access.condition("session__"), hour__gt=WHOLE_DAY)
    later = rows.filter(day__gt=day) | rows.filter(day=day, hour__gte=hour)
    if not later.order_by().aggregate(count=Sum("unknown"))["count"]:
        return  # else no message is read
    lost = Message.objects.filter(
        viewer.access.condition("session__"),
        state=states.MessageState.UNKNOWN,
        created_at__gte=since,
    ).exclude(Exists(Message.objects.filter(resent_from=OuterRef("pk"))))
    found = list(lost.order_by("-pk").values_list("session_id", "pk")[:COUNTED])
    if not found:
        return
    session, newest = found[0]
    text = ngettext(
        "Of %(count)s message sent in the last 24 hours nobody knows whether it arrived.",
        "Of %(count)s messages sent in the last 24 hours nobody knows whether they arrived.",
        len(found),
    )
    yield Alert(
        "unknown_sends",
        text % {"count": len(found)},
        _("Look into the chat; what did not arrive can be sent again there."),
        link("agent_chatsession_change", session, query=f"around={newest}") + f"#m{newest}",
        others=_all(len(found), "agent_message_changelist", "state__exact=unknown"),
    )


def _all(count: int, name: str, query: str) -> tuple[str, str]:
    """The way to a list, where more than one stand in it."""
    if count < 2:
        return "", ""
    return _("All %(count)s") % {"count": count}, link(name, query=query)


def _approvals(viewer: Viewer) -> Iterator[Alert]:
    waiting = Approval.objects.filter(
        viewer.access.condition("session__"), state=states.ApprovalState.WAITING
    )
    found = list(waiting.order_by().values_list("expires_at", "pk")[:COUNTED])
    if not found:
        return
    text = ngettext(
        "%(count)s tool call waits for an owner.",
        "%(count)s tool calls wait for an owner.",
        len(found),
    )
    _expiry, first = min(found)
    page = link("agent_approval_change", first)
    url, others = page, ("", "")
    if len(found) > 1:
        url = link("agent_approval_changelist", query="state__exact=waiting")
        others = _("The one that expires first"), page
    advice = _("Approve or refuse them before they expire.")
    yield Alert("approvals", text % {"count": len(found)}, advice, url, others=others)


def _untold(viewer: Viewer) -> Iterator[Alert]:
    """Outcomes of approved calls that the chat did not hear of in the last day, one by one: each
    is for somebody to tell."""
    untold = find_untold(timezone.now() - timedelta(days=1))
    mine = untold.filter(viewer.access.condition("session__"))
    for one in mine.select_related("session", "tool_call").order_by("-pk")[:UNTOLD]:
        words = {
            "tool": one.tool_call.tool_name if one.tool_call else "",
            "chat": _clean(one.session.title or one.session.key),
        }
        yield Alert(
            "untold",
            _("“%(tool)s” was approved and made, and %(chat)s did not hear of it.") % words,
            _("Tell the chat by hand; the call has the result."),
            link("agent_chatsession_change", one.session_id, query=f"around={one.pk}#m{one.pk}"),
            BAD,
        )


def _silence(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("agent.view_manners"):
        yield from _silence_of_own_chats(viewer)
        return
    rows = Manners.objects.filter(enabled=True, silenced=True)[:COUNTED]
    silencing = [row for row in rows if row.is_silencing]
    if not silencing:
        return
    query = "silenced__exact=1&enabled__exact=1"
    if any(map(chat_manners.is_for_everything, silencing)):
        url = link("agent_manners_changelist", query=query)
        text = _("Everything is silenced: the bot says nothing anywhere.")
        yield Alert("silence", text, _("Switch the row off to let it speak."), url, BAD)
        return
    text = ngettext(
        "%(count)s row of manners silences chats.",
        "%(count)s rows of manners silence chats.",
        len(silencing),
    )
    ends = [row.silenced_until for row in silencing if row.silenced_until is not None]
    count, page = len(silencing), link("agent_manners_change", silencing[0].pk)
    others = _all(count, "agent_manners_changelist", query)
    yield Alert("silence", text % {"count": count}, _next_end(ends), page, others=others)


def _silence_of_own_chats(viewer: Viewer) -> Iterator[Alert]:
    """The same for those who see single chats alone, and no rows of manners."""
    if viewer.access.is_everything or not viewer.may("agent.view_chatsession"):
        return
    table = manners.load_manners_table()
    mine = (
        viewer.access.sessions().filter(platform=manners.ONEBOT).order_by("-last_message_at", "-pk")
    )
    silent = [
        session.pk
        for session in mine[:MOST_SILENT]
        if not types.is_playground(session.account)
        and table.find(hand_messages.find_address(session)).silenced_by
    ]
    if silent:
        text = ngettext(
            "%(count)s of your chats is silenced: the bot says nothing there.",
            "%(count)s of your chats are silenced: the bot says nothing there.",
            len(silent),
        )
        url = link("agent_chatsession_change", silent[0]) + "#acts"
        advice = _("Let it speak on the page of the chat.")
        yield Alert("silence", text % {"count": len(silent)}, advice, url)


def _next_end(ends: list[datetime]) -> str:
    """When the first of ``ends`` is; "" for none."""
    if not ends:
        return ""
    return _("The next one ends by itself at %(time)s.") % {"time": moment(min(ends))}


def _chats(viewer: Viewer) -> Iterator[Alert]:
    """Chats that an operator has taken over, and those in which an account cannot speak, of the
    chats with the newest messages."""
    mine, now = viewer.access.sessions(), timezone.now()
    rows = mine.filter(take_overs.is_taken_over(now)).order_by("-taken_over_at")
    taken = list(rows.values_list("pk", "taken_over_until")[:COUNTED])
    if taken:
        text = ngettext(
            "%(count)s chat is taken over: an operator answers there, and not the bot.",
            "%(count)s chats are taken over: an operator answers there, and not the bot.",
            len(taken),
        )
        advice = _("Hand them back on their pages when it is done.")
        yield Alert(
            "taken_over",
            text % {"count": len(taken)},
            " ".join(filter(None, (advice, _next_end([end for _pk, end in taken if end])))),
            link("agent_chatsession_change", taken[0][0]) + "#taken-over",
            others=_all(len(taken), "agent_chatsession_changelist", "silence=taken_over"),
        )
    recent = mine.order_by("-last_message_at", "-pk").values("pk")[:COUNTED]
    muted = ChatSession.objects.filter(pauses.is_paused(now), pk__in=recent).order_by("-paused_at")
    paused = list(muted.values_list("pk", flat=True))
    if paused:
        text = ngettext(
            "In %(count)s chat an account cannot speak: it is muted or no longer there.",
            "In %(count)s chats an account cannot speak: it is muted or no longer there.",
            len(paused),
        )
        yield Alert(
            "paused",
            text % {"count": len(paused)},
            "",
            link("agent_chatsession_change", paused[0]) + "#paused",
            others=_all(len(paused), "agent_chatsession_changelist", "silence=paused"),
        )


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
    for terms in _shown_budgets(viewer.budgets, places):
        uses = load_budget_uses(terms, places)
        near = [use for use in uses if use.shortage or use.percent >= NEARLY]
        for use in near[:SUBJECTS]:
            yield _alert(use, is_own=places is not None)


def _shown_budgets(found: tuple[BudgetTerms, ...], places: list[str] | None) -> list[BudgetTerms]:
    """That of the environment first, then those that stopped somebody; where ``places`` are given,
    those of chats among them."""
    if places is not None:
        found = tuple(
            terms
            for terms in found
            if terms.kind == SpendKind.CHAT and (not terms.subject or terms.subject in places)
        )
    if len(found) > SHOWN_BUDGETS:
        stopped = set(BudgetStop.objects.values_list("budget", flat=True).distinct())
        found = tuple(
            sorted(found, key=lambda terms: (not terms.environment, terms.pk not in stopped))
        )
    return list(found[:SHOWN_BUDGETS])


def _alert(use: BudgetUse, *, is_own: bool) -> Alert:
    terms = use.terms
    named = find_subjects(terms.kind, [use.subject])[use.subject] if use.subject else None
    words = {
        "name": readable.escape_invisible_chars(terms.label),
        "whom": named.name if named else "",
        "percent": use.percent,
        "shortage": use.shortage.words if use.shortage else "",
    }
    is_replaced = terms.action is BudgetAction.CHEAPER
    url = link("agent_budget_change", terms.pk)
    if is_own:
        pk = named.pk if named else None
        url = "" if pk is None else link("agent_chatsession_change", pk)
    advice = _("It ends with its day or month. Who runs the bot can raise it.")
    if not is_own:
        advice = _("Raise it, or wait until its day or month is over.")
    if terms.environment:
        advice = _(
            "When they are used up, only owners are answered until midnight. More are allowed in "
            ".env; a budget stops single chats or people earlier."
        )
        url = link("agent_budget_changelist")  # who or what spends it
    level = BAD if use.shortage and not is_replaced else NOTABLE
    return Alert("budget", _text(use, is_replaced=is_replaced) % words, advice, url, level)


def _text(use: BudgetUse, *, is_replaced: bool) -> str:
    if use.shortage is None:
        return (
            _("The budget “%(name)s” of %(whom)s is used to %(percent)d %%.")
            if use.subject
            else _("The budget “%(name)s” is used to %(percent)d %%.")
        )
    if is_replaced:
        return (
            _("The budget “%(name)s” of %(whom)s: another endpoint answers, %(shortage)s.")
            if use.subject
            else _("The budget “%(name)s”: another endpoint answers, %(shortage)s.")
        )
    return (
        _("The budget “%(name)s” of %(whom)s is stopped: %(shortage)s.")
        if use.subject
        else _("The budget “%(name)s” is stopped: %(shortage)s.")
    )


#: Rows of each kind that are told of by themselves.
SHOWN = 10
#: Failed sign-ins of a day that are more than somebody's slip.
MANY_FAILURES = 5
#: Bytes below which messages may soon not be recorded any more.
LEAST_FREE = 200 * 2**20


def _outage(viewer: Viewer) -> Iterator[Alert]:
    """Every page has a banner for it; here it says why nothing else changes."""
    found = serving.get_serving()
    outage = found.outage() if found else None
    if outage:
        text = _("The database cannot be written since %(since)s: %(reason)s")
        words = {"since": moment(outage.since), "reason": _(outage.reason)}
        advice = _("Messages wait until it can be written again. See to disk and database.")
        yield Alert("outage", text % words, advice, level=BAD)


def _clock(viewer: Viewer) -> Iterator[Alert]:
    if skew := find_clock_skew():
        text = _(
            "Messages are %(minutes)d minutes old when they come, and are not answered: the clock "
            "of this machine seems to be ahead."
        )
        minutes = int(skew.total_seconds() // 60)
        url = link("agent_message_changelist", query="reason__exact=too_old")
        yield Alert("clock", text % {"minutes": minutes}, _("Set the clock by NTP."), url, BAD)


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
        text = _("The model endpoint “%(name)s” fails, since %(at)s: %(error)s")
        words = {
            "name": _clean(status.endpoint.name),
            "at": moment(status.error_at),
            "error": _clean(told.sentence),
        }
        url = link("agent_modelendpoint_change", status.endpoint_id)
        yield Alert("model", text % words, _clean(told.advice), url, BAD)


def _mcp(viewer: Viewer) -> Iterator[Alert]:
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
    broken = PluginStatus.objects.filter(
        state=PluginStatus.PluginState.BROKEN,
        plugin__enabled=True,
        process_id__in=ServerProcess.objects.values("pk"),
    )
    faulty = Plugin.objects.filter(
        Q(pk__in=broken.values("plugin")) | ~Q(fault=""), enabled=True
    ).order_by("pk")
    for plugin in faulty[:SHOWN]:
        words = {
            "name": _clean(plugin.plugin_id or plugin.folder),
            "fault": _clean(error_words.retell(plugin.fault)),
        }
        text = (
            _("The plugin “%(name)s” cannot run: %(fault)s")
            if plugin.fault
            else _("The plugin “%(name)s” was given up after repeated crashes.")
        )
        advice = _("Its page has its last words, and a button to load it again.")
        yield Alert("plugin", text % words, advice, link("tools_plugin_change", plugin.pk), BAD)


def _tools(viewer: Viewer) -> Iterator[Alert]:
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
    try:
        free = shutil.disk_usage(settings.DATA_DIR).free
    except OSError:
        return
    if free < max(LEAST_FREE, settings.MEDIA_FREE_BYTES):
        text = _("Only %d MiB are free for the data folder.") % (free >> 20)
        advice, level = _("Make room: pictures, voice and files are not fetched."), NOTABLE
        if free < LEAST_FREE:
            advice, level = _("Make room: without it, messages cannot be recorded."), BAD
        yield Alert("disk", text, advice, level=level)


def _clean(text: str) -> str:
    return readable.escape_invisible_chars(text[:400])


#: Each with the permission that it takes, "" where it looks for itself, and whether it is for those
#: alone who may see all; else it tells of what is within reach.
PARTS = (
    (_accounts, "", False),
    (_sends, "agent.view_message", False),
    (_approvals, "agent.view_approval", False),
    (_untold, "agent.view_message", False),
    (_silence, "", False),
    (_chats, "agent.view_chatsession", False),
    (_outage, "", True),
    (_clock, "agent.view_message", True),
    (_models, "agent.view_modelendpoint", True),
    (_budgets, "", False),
    (_mcp, "tools.view_mcpserver", True),
    (_plugins, "tools.view_plugin", True),
    (_tools, "tools.view_toolconfig", True),
    (_sign_ins, "auth.view_user", True),
    (_disk, "", True),
)


def find_alerts(viewer: Viewer) -> Iterator[Alert]:
    for part, needed, of_all in PARTS:
        is_within = viewer.access.is_everything or not of_all
        if is_within and (not needed or viewer.may(needed)):
            yield from part(viewer)
