"""Alerts of accounts and chats, of those alone that are within reach."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Sum
from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agent.domain.playground import is_playground
from agent.domain.states import ApprovalState
from agent.models import ActivitySum, Approval, ChatSession, Manners
from agent.models.activity import WHOLE_DAY
from agent.record.activity import hour_of
from agent.record.chat_manners import is_for_everything
from agent.record.pauses import is_paused
from frostproject.cockpit.alerts import BAD, Alert, Viewer, link
from onebot.models import Bot

#: Accounts that are looked at, and of which each is told of by itself.
MOST_BOTS = 200
#: Rows that are counted, at most.
COUNTED = 1_000


def chat_alerts(viewer: Viewer) -> Iterator[Alert]:
    yield from _accounts(viewer)
    yield from _sends(viewer)
    yield from _approvals(viewer)
    yield from _silence(viewer)
    yield from _chats(viewer)


def find_bots(viewer: Viewer) -> list[Bot]:
    """The accounts within reach, and those of single chats within reach; without playgrounds."""
    if not viewer.sees_accounts:
        return []
    rows = Bot.objects.order_by("self_id")
    if not viewer.access.is_everything:
        own = viewer.access.accounts | {account for account, _chat in viewer.access.chats}
        rows = rows.filter(self_id__in=sorted(own))
    return [bot for bot in rows[:MOST_BOTS] if not is_playground(bot.self_id)]


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
                text % {"account": bot.self_id, "since": since},
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
                % bot.self_id,
                _("Sign in to QQ in the OneBot client."),
                url,
                BAD,
            )


def _sends(viewer: Viewer) -> Iterator[Alert]:
    """What was sent in the last day, and may have arrived or not."""
    if not viewer.may("agent.view_message"):
        return
    day, hour = hour_of(timezone.now() - timedelta(days=1))
    rows = ActivitySum.objects.filter(viewer.access.condition("session__"), hour__gt=WHOLE_DAY)
    later = rows.filter(day__gt=day) | rows.filter(day=day, hour__gte=hour)
    count = later.order_by().aggregate(count=Sum("unknown"))["count"] or 0
    if count:
        yield Alert(
            "unknown_sends",
            ngettext(
                "Of %(count)s message sent in the last 24 hours nobody knows whether it arrived.",
                "Of %(count)s messages sent in the last 24 hours nobody knows whether they "
                "arrived.",
                count,
            )
            % {"count": count},
            _("Look into the chats; what did not arrive can be sent again on its page."),
            link("agent_message_changelist", query="state__exact=unknown"),
        )


def _approvals(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may("agent.view_approval"):
        return
    waiting = Approval.objects.filter(
        viewer.access.condition("session__"), state=ApprovalState.WAITING
    )
    if count := waiting.order_by()[:COUNTED].count():
        yield Alert(
            "approvals",
            ngettext(
                "%(count)s tool call waits for an owner.",
                "%(count)s tool calls wait for an owner.",
                count,
            )
            % {"count": count},
            _("Approve or refuse them before they expire."),
            link("agent_approval_changelist", query="state__exact=waiting"),
        )


def _silence(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("agent.view_manners"):
        return
    silencing = list(Manners.objects.filter(enabled=True, silenced=True)[:COUNTED])
    if not silencing:
        return
    url = link("agent_manners_changelist", query="silenced__exact=1&enabled__exact=1")
    if any(map(is_for_everything, silencing)):
        text = _("Everything is silenced: the bot says nothing anywhere.")
        yield Alert("silence", text, _("Switch the row off to let it speak."), url, BAD)
        return
    text = ngettext(
        "%(count)s row of manners silences chats.",
        "%(count)s rows of manners silence chats.",
        len(silencing),
    )
    yield Alert("silence", text % {"count": len(silencing)}, "", url)


def _chats(viewer: Viewer) -> Iterator[Alert]:
    """Chats that an operator has taken over, and those in which an account cannot speak, of the
    chats with the newest messages."""
    if not viewer.may("agent.view_chatsession"):
        return
    mine = viewer.access.sessions()
    taken = mine.filter(taken_over_at__isnull=False)[:COUNTED].count()
    if taken:
        text = ngettext(
            "%(count)s chat is taken over: an operator answers there, and not the bot.",
            "%(count)s chats are taken over: an operator answers there, and not the bot.",
            taken,
        )
        yield Alert(
            "taken_over",
            text % {"count": taken},
            _("Hand them back on their pages when it is done."),
            link("agent_chatsession_changelist", query="silence=taken_over"),
        )
    recent = mine.order_by("-last_message_at", "-pk").values("pk")[:COUNTED]
    now = timezone.now()
    paused = ChatSession.objects.filter(is_paused(now), pk__in=recent).order_by().count()
    if paused:
        text = ngettext(
            "In %(count)s chat an account cannot speak: it is muted or no longer there.",
            "In %(count)s chats an account cannot speak: it is muted or no longer there.",
            paused,
        )
        yield Alert(
            "paused",
            text % {"count": paused},
            "",
            link("agent_chatsession_changelist", query="silence=paused"),
        )
