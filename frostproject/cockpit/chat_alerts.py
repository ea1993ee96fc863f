"""What needs somebody in chats: of accounts, of messages that were sent, of calls that wait, and of
chats in which the bot keeps silent."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from agent.access.players import may_decide
from agent.domain import states, types
from agent.models import (
    Approval,
    ChatSession,
    JoinRequest,
    Message,
)
from agent.pages.own_chats import own_requests
from agent.record.chats.chat_record import find_address
from agent.record.runs import deferred_calls
from agent.record.settings import chat_manners, manners
from agent.record.waiting import pauses, take_overs
from frostproject.cockpit.alert import BAD, Alert, AlertAct, clean, look_at_chat, moment
from frostproject.cockpit.viewer import Viewer, link
from onebot.admin.bots import account_words
from tools.local_time import counted_since
from tools.text import readable

#: Rows that are counted, at most, and own chats that are looked at.
COUNTED, MOST_SILENT = 1_000, 200
#: Outcomes of calls, calls and messages that are told of by themselves.
UNTOLD = 5
#: Characters of a message that are told; with more of its arguments a call is not decided here, for
#: nobody decides about what is cut.
SAID, ARGUED = 40, 200


def find_accounts(viewer: Viewer) -> Iterator[Alert]:
    """Every account that was ever here and is not: it stays until its row is deleted."""
    way = link("start") + "#step-client"
    may_connect = viewer.access.is_everything and viewer.may("onebot.change_bot")
    acts = (AlertAct(_("Reconnect"), way),) if may_connect else ()
    for bot in viewer.bots:
        url = viewer.page_of_account(bot.self_id, bot.pk)
        if not bot.online:
            since = moment(bot.disconnected_at or bot.last_heartbeat_at)
            text = (
                _("Account %(account)s is not connected, since %(since)s.")
                if since
                else _("Account %(account)s is not connected.")
            )
            if bot.silent_at:
                text = _("Account %(account)s fell silent and was disconnected, at %(since)s.")
            yield Alert(
                "disconnected",
                text % {"account": account_words(bot), "since": since},
                _(
                    "Start its OneBot client and see that the address and the token are right. An "
                    "account that is retired is deleted on its page."
                ),
                url,
                BAD,
                facts=(bot.self_id, since),
                acts=acts,
                about=bot.self_id,
                account=bot.self_id,
            )
        elif bot.account_online is False:
            yield Alert(
                "account_offline",
                _("Account %s is offline: its client is connected, but not signed in to QQ.")
                % account_words(bot),
                _("Sign in to QQ in the OneBot client."),
                url,
                BAD,
                facts=(bot.self_id,),
                about=bot.self_id,
                account=bot.self_id,
            )
        elif bot.cannot_speak_since:
            yield Alert(
                "cannot_speak",
                _("Account %(account)s hears and cannot speak, since %(since)s.")
                % {"account": account_words(bot), "since": moment(bot.cannot_speak_since)},
                _(
                    "Its last messages failed, or nobody knows of them. Look into the OneBot "
                    "client: QQ may hold the account back for some time."
                ),
                url,
                BAD,
                facts=(bot.self_id, bot.cannot_speak_since),
                about=bot.self_id,
                account=bot.self_id,
            )


def find_sends(viewer: Viewer) -> Iterator[Alert]:
    """What was sent in the last day, may have arrived or not, and was not sent again."""
    since = timezone.now() - timedelta(days=1)
    first, hours = counted_since(24), viewer.sums.items()
    if not any(
        counts.get("unknown") for (day, hour), counts in hours if hour >= 0 and (day, hour) >= first
    ):
        return  # else no message is read
    lost = Message.objects.filter(
        viewer.access.condition("session__"),
        state=states.MessageState.UNKNOWN,
        created_at__gte=since,
    ).exclude(Exists(Message.objects.filter(resent_from=OuterRef("pk"))))
    found = list(lost.order_by("-pk").values_list("pk", flat=True)[:COUNTED])
    single = lost.filter(pk__in=found[:UNTOLD]).select_related("session").order_by("-pk")
    for one in single.defer("segments", "raw") if found else ():
        yield _tell_send(viewer, one)
    if len(found) > UNTOLD:
        further = len(found) - UNTOLD
        yield Alert(
            "unknown_sends",
            ngettext(
                "Of %(count)s more message sent in the last 24 hours nobody knows whether it "
                "arrived.",
                "Of %(count)s more messages sent in the last 24 hours nobody knows whether they "
                "arrived.",
                further,
            )
            % {"count": further},
            url=link("agent_message_changelist", query="state__exact=unknown"),
            facts=(found[UNTOLD],),
            plain=_plain_send(),
        )


def _tell_send(viewer: Viewer, one: Message) -> Alert:
    words = {"text": clean(one.text)[:SAID], "chat": _name_chat(one.session)}
    chat = link("agent_chatsession_change", one.session_id, query=f"around={one.pk}")
    acts = [*look_at_chat(viewer, f"{chat}#m{one.pk}")]
    if viewer.may("agent.speak_in_chat"):
        url = link("agent_chatsession_act", one.session_id, "resend", one.pk)
        acts.append(AlertAct(_("Send again, perhaps twice"), url, {"twice": "yes"}))
    return Alert(
        "unknown_sends",
        _("“%(text)s” to %(chat)s: nobody knows whether it arrived.") % words,
        _("Look into the chat; what did not arrive can be sent again there."),
        f"{chat}#m{one.pk}",
        facts=(one.pk,),
        acts=tuple(acts),
        plain=_plain_send(),
    )


def _plain_send() -> str:
    return _("Of messages that were sent nobody knows whether they arrived.")


def _plain_approval() -> str:
    return _("Tool calls wait for an owner.")


def _name_chat(session: ChatSession) -> str:
    return clean(session.title or session.key)


def _all(count: int, name: str, query: str) -> tuple[str, str]:
    """The way to a list, where more than one stand in it."""
    if count < 2:
        return "", ""
    return _("All %(count)s") % {"count": count}, link(name, query=query)


def find_approvals(viewer: Viewer) -> Iterator[Alert]:
    waiting = Approval.objects.filter(
        viewer.access.condition("session__"), state=states.ApprovalState.WAITING
    )
    rows = waiting.select_related("session", "call").order_by("expires_at", "pk")
    found = list(rows[: UNTOLD + 1])
    for one in found[:UNTOLD]:
        arguments = readable.escape_invisible_chars(
            json.dumps(one.arguments, ensure_ascii=False) if one.arguments else ""
        )
        words = {
            "tool": one.call.tool_name,
            "arguments": arguments if len(arguments) <= ARGUED else f"{arguments[:ARGUED]}…",
            "chat": _name_chat(one.session),
            "until": moment(one.expires_at),
        }
        yield Alert(
            "approvals",
            _("%(chat)s: may “%(tool)s” be called? %(arguments)s") % words,
            _("It waits for an owner until %(until)s.") % words,
            link("agent_approval_change", one.pk),
            facts=(one.pk,),
            acts=tuple(_decisions(viewer, one, is_whole=len(arguments) <= ARGUED)),
            plain=_plain_approval(),
        )
    if len(found) > UNTOLD:
        count = waiting.order_by()[:COUNTED].count() - UNTOLD
        yield Alert(
            "approvals",
            ngettext(
                "%(count)s more tool call waits for an owner.",
                "%(count)s more tool calls wait for an owner.",
                count,
            )
            % {"count": count},
            _("Approve or refuse them before they expire."),
            link("agent_approval_changelist", query="state__exact=waiting"),
            facts=(found[-1].pk,),
            plain=_plain_approval(),
        )


def find_requests(viewer: Viewer) -> Iterator[Alert]:
    """People who wait to be let in."""
    waiting = JoinRequest.objects.filter(state=states.ApprovalState.WAITING, decision="")
    mine = waiting.filter(own_requests(viewer.access))
    found = list(mine.order_by("-pk").values_list("pk", flat=True)[:COUNTED])
    if found:
        yield Alert(
            "requests",
            ngettext(
                "%(count)s request waits to be let in.",
                "%(count)s requests wait to be let in.",
                len(found),
            )
            % {"count": len(found)},
            _("Approve or refuse them, or make rules that do."),
            link("agent_joinrequest_changelist", query="state__exact=waiting"),
            facts=(found[0],),
        )


def _decisions(viewer: Viewer, row: Approval, *, is_whole: bool) -> Iterator[AlertAct]:
    """What may be done about a call that waits."""
    page = link("agent_approval_change", row.pk)
    if viewer.may("agent.change_approval") and may_decide(viewer.user, row.session.account):
        if is_whole:
            yield AlertAct(_("Approve"), page, {"decision": "approve"})
        else:
            yield AlertAct(_("Decide"), page)
        yield AlertAct(_("Refuse"), page, {"decision": "refuse"})
    yield from look_at_chat(viewer, link("agent_chatsession_change", row.session_id))


def find_untold(viewer: Viewer) -> Iterator[Alert]:
    """Outcomes of approved calls that the chat did not hear of in the last day, one by one: each
    is for somebody to tell."""
    untold = deferred_calls.find_untold(timezone.now() - timedelta(days=1))
    mine = untold.filter(viewer.access.condition("session__"))
    for one in mine.select_related("session", "tool_call").order_by("-pk")[:UNTOLD]:
        url = link("agent_chatsession_change", one.session_id, query=f"around={one.pk}#m{one.pk}")
        yield Alert(
            "untold",
            _("“%(tool)s” was approved and made, and %(chat)s did not hear of it.")
            % {
                "tool": one.tool_call.tool_name if one.tool_call else "",
                "chat": _name_chat(one.session),
            },
            _("Tell the chat by hand; the call has the result."),
            url,
            BAD,
            facts=(one.pk,),
            acts=tuple(look_at_chat(viewer, url)),
            plain=_("A tool call was approved and made, and its chat did not hear of it."),
        )


def find_silence(viewer: Viewer) -> Iterator[Alert]:
    if not viewer.may_see_all("agent.view_manners"):
        yield from _silence_of_own_chats(viewer)
        return
    if not (silencing := viewer.silencing):
        return
    query = "silenced__exact=1&enabled__exact=1"
    if any(map(chat_manners.is_for_everything, silencing)):
        yield Alert(
            "silence",
            _("Everything is silenced: the bot says nothing anywhere."),
            _("Switch the row off to let it speak."),
            link("agent_manners_changelist", query=query),
            BAD,
            facts=tuple(row.pk for row in silencing),
        )
        return
    count = len(silencing)
    yield Alert(
        "silence",
        ngettext(
            "%(count)s row of manners silences chats.",
            "%(count)s rows of manners silence chats.",
            count,
        )
        % {"count": count},
        _next_end([row.silenced_until for row in silencing if row.silenced_until is not None]),
        link("agent_manners_change", silencing[0].pk),
        others=_all(count, "agent_manners_changelist", query),
        facts=tuple((row.pk, row.silenced_until) for row in silencing),
    )


def _silence_of_own_chats(viewer: Viewer) -> Iterator[Alert]:
    """The same for those who see single chats alone, and no rows of manners."""
    if viewer.access.is_everything or not viewer.may("agent.view_chatsession"):
        return
    table = manners.load_manners_table()
    silent = [
        session.pk
        for session in viewer.access.sessions()
        .filter(platform=manners.ONEBOT)
        .order_by("-last_message_at", "-pk")[:MOST_SILENT]
        if not types.is_playground(session.account)
        and table.find(find_address(session)).silenced_by
    ]
    if silent:
        url = link("agent_chatsession_change", silent[0]) + "#acts"
        yield Alert(
            "silence",
            ngettext(
                "%(count)s of your chats is silenced: the bot says nothing there.",
                "%(count)s of your chats are silenced: the bot says nothing there.",
                len(silent),
            )
            % {"count": len(silent)},
            _("Let it speak on the page of the chat."),
            url,
            facts=tuple(sorted(silent)),
            acts=tuple(look_at_chat(viewer, url)),
        )


def _next_end(ends: list[datetime]) -> str:
    """When the first of ``ends`` is; "" for none."""
    if not ends:
        return ""
    return _("The next one ends by itself at %(time)s.") % {"time": moment(min(ends))}


def find_taken_over(viewer: Viewer) -> Iterator[Alert]:
    """Chats that an operator has taken over."""
    mine = viewer.access.sessions()
    rows = mine.filter(take_overs.is_taken_over(timezone.now())).order_by("-taken_over_at")
    taken = list(rows.values_list("pk", "taken_over_until")[:COUNTED])
    if taken:
        advice = _("Hand them back on their pages when it is done.")
        page = link("agent_chatsession_change", taken[0][0]) + "#taken-over"
        yield Alert(
            "taken_over",
            ngettext(
                "%(count)s chat is taken over: an operator answers there, and not the bot.",
                "%(count)s chats are taken over: an operator answers there, and not the bot.",
                len(taken),
            )
            % {"count": len(taken)},
            " ".join(filter(None, (advice, _next_end([end for _pk, end in taken if end])))),
            page,
            others=_all(len(taken), "agent_chatsession_changelist", "silence=taken_over"),
            facts=tuple(sorted(taken)),
            acts=tuple(look_at_chat(viewer, page)),
        )


def find_paused(viewer: Viewer) -> Iterator[Alert]:
    """Chats in which an account cannot speak, of those with the newest messages."""
    mine = viewer.access.sessions().order_by("-last_message_at", "-pk")
    muted = ChatSession.objects.filter(
        pauses.is_paused(timezone.now()), pk__in=mine.values("pk")[:COUNTED]
    )
    paused = list(muted.order_by("-paused_at").values_list("pk", flat=True))
    if paused:
        page = link("agent_chatsession_change", paused[0]) + "#paused"
        yield Alert(
            "paused",
            ngettext(
                "In %(count)s chat an account cannot speak: it is muted or no longer there.",
                "In %(count)s chats an account cannot speak: it is muted or no longer there.",
                len(paused),
            )
            % {"count": len(paused)},
            "",
            page,
            others=_all(len(paused), "agent_chatsession_changelist", "silence=paused"),
            facts=tuple(sorted(paused)),
            acts=tuple(look_at_chat(viewer, page)),
        )
