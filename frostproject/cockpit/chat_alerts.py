"""Alerts of accounts and chats, of those alone that are within reach."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Sum
from django.utils import formats, timezone
from django.utils.translation import gettext as _, ngettext

from agent.domain import states, types
from agent.models import ActivitySum, Approval, ChatSession, Manners, Message
from agent.models.activity import WHOLE_DAY
from agent.record.runs.deferred_calls import find_untold
from agent.record.settings import chat_manners, manners
from agent.record.sums.activity import hour_of
from agent.record.waiting import hand_messages, pauses, take_overs
from frostproject.cockpit.alerts import BAD, Alert, Viewer, link
from onebot.admin.names import account_words
from onebot.models import Bot
from tools.text.readable import escape_invisible_chars

#: Accounts that are looked at, and of which each is told of by itself.
MOST_BOTS = 200
#: Rows that are counted, at most, and own chats that are looked at.
COUNTED, MOST_OWN = 1_000, 200
#: Outcomes of calls that are told of by themselves.
UNTOLD = 5


def chat_alerts(viewer: Viewer) -> Iterator[Alert]:
    for part in (_accounts, _sends, _approvals, _untold, _silence, _chats):
        yield from part(viewer)


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
    if not viewer.may("agent.view_message"):
        return
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
    if not viewer.may("agent.view_approval"):
        return
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
    if not viewer.may("agent.view_message"):
        return
    untold = find_untold(timezone.now() - timedelta(days=1))
    mine = untold.filter(viewer.access.condition("session__"))
    for one in mine.select_related("session", "tool_call").order_by("-pk")[:UNTOLD]:
        words = {
            "tool": one.tool_call.tool_name if one.tool_call else "",
            "chat": escape_invisible_chars(one.session.title or one.session.key),
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
        for session in mine[:MOST_OWN]
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
    if not viewer.may("agent.view_chatsession"):
        return
    mine = viewer.access.sessions()
    now = timezone.now()
    columns = ("pk", "taken_over_until")
    taken = list(
        mine.filter(take_overs.is_taken_over(now))
        .order_by("-taken_over_at")
        .values_list(*columns)[:COUNTED]
    )
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
