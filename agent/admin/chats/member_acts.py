"""What operators have an account do in a group: mute, unmute, remove, take back, mute all."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import get_language, gettext, gettext_lazy as _

from agent.admin.chats.act import PERSON_ID, Act, ActCall, ActDone, ActRefused, may
from agent.domain.states import ActKind
from agent.models import ChatSession, Message
from agent.record.chats.chat_record import find_address
from agent.record.settings.manners import ONEBOT
from agent.record.waiting.operator_acts import record_act
from agent.runtime.serving import get_serving
from agent.runtime.steering import GroupAct

#: For how long a member is muted, in minutes.
MUTES = {"10": _("10 minutes"), "60": _("1 hour"), "1440": _("1 day"), "43200": _("30 days")}


def _mute(call: ActCall) -> ActDone:
    minutes = call.posted("minutes")
    if minutes not in MUTES:
        raise ActRefused(gettext("Choose how long."))
    act = _on_person(call, "mute_member", "set_group_ban", duration=int(minutes) * 60)
    return _begin(call, ActKind.MUTE, act, f"{act.person} {minutes} min")


def _unmute(call: ActCall) -> ActDone:
    act = _on_person(call, "unmute_member", "set_group_ban", duration=0)
    return _begin(call, ActKind.UNMUTE, act, act.person)


def _kick(call: ActCall) -> ActDone:
    rejects = call.posted("reject_again") == "yes"
    act = _on_person(call, "kick_member", "set_group_kick", reject_add_request=rejects)
    return _begin(call, ActKind.KICK, act, act.person)


def _mute_group(call: ActCall) -> ActDone:
    if (on := call.posted("on")) not in ("yes", "no"):
        raise ActRefused(gettext("Choose what is to be done."))
    is_on, group = on == "yes", _group(call.session)
    act = GroupAct("mute_group", "set_group_whole_ban", {"group_id": group, "enable": is_on})
    return _begin(call, ActKind.MUTE_GROUP, act, "on" if is_on else "off")


def _recall(call: ActCall) -> ActDone:
    message = call.message
    if message is None or not message.message_id or call.session.platform != ONEBOT:
        raise ActRefused(gettext("This message cannot be taken back: the client gave it no id."))
    if message.recalled_at is not None:
        raise ActRefused(gettext("It was taken back already."))
    person = ""
    if message.direction == Message.Direction.IN and message.sender_id != call.session.account:
        _group(call.session)
        person = message.sender_id
    act = GroupAct("recall_message", "delete_msg", {"message_id": message.message_id}, person)
    return _begin(call, ActKind.RECALL, act, f"#{message.pk}")


def _on_person(call: ActCall, tool: str, action: str, **params: object) -> GroupAct:
    person = call.posted("person").strip()
    if not PERSON_ID.fullmatch(person):
        raise ActRefused(gettext("Choose one person."))
    params |= {"group_id": _group(call.session), "user_id": person}
    return GroupAct(tool, action, params, person)


def _group(session: ChatSession) -> str:
    if not _is_group(session):
        raise ActRefused(gettext("That is done in groups only."))
    return session.peer_id


def _is_group(session: ChatSession) -> bool:
    return session.platform == ONEBOT and session.kind == ChatSession.Kind.GROUP


def _begin(call: ActCall, kind: ActKind, act: GroupAct, detail: str) -> ActDone:
    """Put the act on record before it is done; what came of it is added after."""
    serving = get_serving()
    if serving is None or serving.steering is None:
        raise ActRefused(
            gettext("This process sends no messages. Open the page of the running server.")
        )
    row = record_act(
        kind, call.session.pk, call.author, message=call.message, detail=f"{detail}: …"
    )
    wanted = find_address(call.session), act, row.pk, detail, get_language() or ""
    anchor = f"m{call.message.pk}" if call.message else "acts"

    def then() -> ActDone:
        words = serving.ask(lambda steering: steering.act(*wanted))
        if words is None:
            text = gettext("The client has not answered yet: what came of it will be on record.")
            return ActDone("", anchor=anchor, warning=text)
        return ActDone("" if words else gettext("Done."), anchor=anchor, refusal=words)

    return ActDone("", then, anchor)


def list_mutes(session: ChatSession, request: HttpRequest) -> list[tuple[str, Any]]:
    """For how long the reader may have a member muted; none where he may not."""
    mutes = _is_group(session) and may(request, MEMBER_ACTS["mute"])
    return list(MUTES.items()) if mutes else []


MEMBER_ACTS = {
    "mute": Act(_mute),
    "unmute": Act(_unmute),
    "kick": Act(_kick),
    "mute-group": Act(_mute_group),
    "recall": Act(_recall, on_message=True),
}
