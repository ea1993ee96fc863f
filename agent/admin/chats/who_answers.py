"""Who answers in a chat and whom: take over, hand back, silence, one person, persona,
model, reset, cancel, stop a call."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils import formats, timezone
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from agent.admin.chats.act import (
    CHANGE,
    MANNERS,
    PERSON_ID,
    SPEAK,
    Act,
    ActCall,
    ActDone,
    ActRefused,
    may,
)
from agent.domain import states, types
from agent.models import ChatSession, Message, Run
from agent.record.chats import chat_resets
from agent.record.chats.chat_record import find_address
from agent.record.settings import chat_choices, chat_manners, timed_silences
from agent.record.settings.manners import ONEBOT, load_manners_table
from agent.record.waiting import call_stops, operator_acts, pauses, stops, take_overs
from agent.runtime.serving import get_serving, steer
from tools.admin.record_pages import parse_row_number
from tools.local_time import begin_of_tomorrow

#: After how many hours a take-over ends by itself; 0 for never. The first is chosen already.
HOURS = (12, 1, 4, 24, 72, 0)


def _take_over(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    hours = call.posted("hours")
    if hours not in {str(one) for one in HOURS}:
        raise ActRefused(gettext("Choose how long you take over."))
    end = timezone.now() + timedelta(hours=int(hours)) if int(hours) else None
    stopped = take_overs.take_over(call.session.pk, call.author, end)
    chat = find_address(call.session)
    words = gettext("You have taken over: what is said to the bot here is yours to answer.")
    if end is not None:
        at = formats.date_format(timezone.localtime(end), "DATETIME_FORMAT")
        words += " " + gettext("It ends by itself at %(time)s.") % {"time": at}
    return ActDone(
        words,
        partial(_let_go, chat, stopped, states.MessageReason.TAKEN_OVER),
        "compose",
        undo="hand-back",
    )


def _hand_back(call: ActCall) -> ActDone:
    if not take_overs.hand_back(call.session.pk, call.author):
        raise ActRefused(gettext("The bot answers here already: nobody has taken over."))
    return ActDone(gettext("The bot answers here again, from the next message on."))


def _silence(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    timed_silences.silence_chat(find_address(call.session), None, call.author)
    operator_acts.record_act(states.ActKind.SILENCE, call.session.pk, call.author)
    return ActDone(gettext("Silenced this chat."), undo="speak")


def _speak(call: ActCall) -> ActDone:
    """Take the silence out of the row for this chat alone; those for others too stay."""
    _only_onebot(call.session)
    chat = find_address(call.session)
    own, words, undo = chat_manners.find_chat_manners(chat), "", ""
    if own is not None and own.is_silencing:
        # until it was taken back; one that ends by itself is not made anew
        undo = "silence" if own.silenced_until is None else ""
        timed_silences.end_silence(chat, call.author)
        operator_acts.record_act(states.ActKind.SPEAK, call.session.pk, call.author)
        words = gettext("Let this chat speak.")
    if still := load_manners_table().find(chat).find_silence(timezone.now()):
        text = gettext("It is still silenced by “%(name)s”, which is for other chats too.")
        return ActDone(words, warning=text % {"name": still}, undo=undo)
    return ActDone(words or gettext("This chat is not silenced."), undo=undo)


#: For how long nobody but one person is answered.
SPANS: dict[str, tuple[Any, timedelta | None]] = {
    "10": (_("10 minutes"), timedelta(minutes=10)),
    "60": (_("1 hour"), timedelta(hours=1)),
    "480": (_("8 hours"), timedelta(hours=8)),
    "tomorrow": (_("until tomorrow"), None),
}


def _answer_only(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    person, span = call.posted("person").strip(), SPANS.get(call.posted("span"))
    if call.session.kind != ChatSession.Kind.GROUP:
        raise ActRefused(gettext("In a private chat there is nobody else to answer."))
    if span is None or not PERSON_ID.fullmatch(person):
        raise ActRefused(gettext("Choose who is answered, and for how long."))
    end = timezone.now() + span[1] if span[1] else begin_of_tomorrow()
    timed_silences.answer_only(find_address(call.session), person, end, call.author)
    operator_acts.record_act(
        states.ActKind.ONLY, call.session.pk, call.author, detail=f"{person} {end.isoformat()}"
    )
    words = gettext("Until %(time)s only %(person)s is answered here; others are heard.") % {
        "time": formats.date_format(timezone.localtime(end), "Y-m-d H:i"),
        "person": person,
    }
    return ActDone(words, undo="everybody")


def _answer_everybody(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    chat = find_address(call.session)
    own = chat_manners.find_chat_manners(chat)
    if own is None or not own.only_person:
        raise ActRefused(gettext("No single person is chosen for this chat alone."))
    timed_silences.answer_everybody(chat, call.author)
    operator_acts.record_act(states.ActKind.EVERYBODY, call.session.pk, call.author)
    return ActDone(gettext("Others are answered here again, from the next message on."))


def _lift(call: ActCall) -> ActDone:
    if not pauses.lift_pause(find_address(call.session)):
        raise ActRefused(gettext("The account can speak here already."))
    operator_acts.record_act(states.ActKind.LIFT, call.session.pk, call.author)
    return ActDone(gettext("The account can speak here again, from the next message on."))


def _reset(call: ActCall) -> ActDone:
    newest = Message.objects.filter(session=call.session).order_by("-pk").first()
    if newest is None:
        raise ActRefused(gettext("Nothing was said here yet."))
    chat_resets.reset_context(call.session.pk, newest.pk)
    operator_acts.record_act(states.ActKind.RESET, call.session.pk, call.author, message=newest)
    return ActDone(gettext("The context is fresh: the model sees nothing of what was said before."))


class Choice(NamedTuple):
    """What can be chosen for one chat alone, and how; ``none`` and ``some`` say what was."""

    label: Any
    list_rows: Callable[[], list[chat_choices.Named]]
    find_chosen: Callable[[types.ChatAddress], int | None]
    choose: Callable[[types.ChatAddress, int | None, User], None]
    kind: states.ActKind
    none: Any
    some: Any


CHOICES = {
    "persona": Choice(
        _("persona"),
        chat_choices.list_personas,
        chat_choices.find_chosen_persona,
        chat_choices.choose_persona,
        states.ActKind.PERSONA,
        _("From the next message on, nobody is chosen for this chat alone."),
        _("From the next message on, %(name)s answers here."),
    ),
    "model": Choice(
        _("model"),
        chat_choices.list_chat_endpoints,
        chat_choices.find_chosen_endpoint,
        chat_choices.choose_endpoint,
        states.ActKind.MODEL,
        _("From the next message on, no model is chosen for this chat alone."),
        _("From the next message on, %(name)s is asked first here."),
    ),
}


def _choose(name: str, call: ActCall) -> ActDone:
    _only_onebot(call.session)
    choice, chat, chosen = CHOICES[name], find_address(call.session), call.posted(name)
    names = {str(one.pk): one.name for one in choice.list_rows()}
    if chosen and chosen not in names:
        raise ActRefused(gettext("What was chosen is not there any more, or is switched off."))
    before, pk = choice.find_chosen(chat), int(chosen) if chosen else None
    choice.choose(chat, pk, call.author)
    operator_acts.record_act(
        choice.kind, call.session.pk, call.author, detail=names.get(chosen, "")
    )
    words = choice.some % {"name": names[chosen]} if chosen else choice.none
    return ActDone(str(words), undo=name if before != pk else "", before=before)


def _cancel(call: ActCall) -> ActDone:
    message = call.message
    if message is None or message.reason == states.MessageReason.COMMAND:
        raise ActRefused(gettext("This cannot be cancelled."))
    pk = message.merged_into_id or message.pk
    if not stops.stop_answer(pk, states.MessageReason.STOPPED).is_stopped:
        raise ActRefused(gettext("There is nothing to cancel: the answer has ended already."))
    run = Run.objects.filter(message=pk, parent=None).order_by("-pk").first()
    operator_acts.record_act(
        states.ActKind.CANCEL, call.session.pk, call.author, message=message, run=run
    )
    then = partial(_let_go, find_address(call.session), [pk], states.MessageReason.STOPPED)
    return ActDone(gettext("The answer was cancelled."), then, f"m{message.pk}")


def _stop_call(call: ActCall) -> ActDone:
    number = parse_row_number(call.posted("call"))
    stopped = call_stops.ask_to_stop(call.session.pk, number, call.author)
    if stopped is None:
        raise ActRefused(gettext("There is nothing to stop: the call is not under way any more."))
    words = gettext("%(tool)s is stopped; its run goes on. It may have had its effect.")
    then = partial(steer, lambda serving: serving.stop_calls())
    return ActDone(words % {"tool": stopped.tool_name}, then)


def _let_go(chat: object, pks: list[int], reason: states.MessageReason) -> None:
    """Have the server of this process stop at once; others stop at their next step."""
    if pks:
        steer(lambda serving: serving.let_go(chat, pks, reason))  # type: ignore[arg-type]


def _only_onebot(session: ChatSession) -> None:
    if session.platform != ONEBOT:
        raise ActRefused(gettext("This is no chat of an account."))


STEERING_ACTS = {
    "take-over": Act(_take_over),
    "hand-back": Act(_hand_back),
    "silence": Act(_silence, (MANNERS, SPEAK)),
    "speak": Act(_speak, (MANNERS, SPEAK)),
    "only": Act(_answer_only, (MANNERS, SPEAK)),
    "everybody": Act(_answer_everybody, (MANNERS, SPEAK)),
    "lift": Act(_lift, (CHANGE,)),
    "reset": Act(_reset, (CHANGE,)),
    "persona": Act(partial(_choose, "persona"), (CHANGE,)),
    "model": Act(partial(_choose, "model"), (MANNERS,)),
    "cancel": Act(_cancel, on_message=True),
    "stop-call": Act(_stop_call),
}


def hours_in_words(hours: int) -> str:
    if not hours:
        return gettext("until I hand back")
    return ngettext("for %(count)d hour", "for %(count)d hours", hours) % {"count": hours}


def list_spans(session: ChatSession, request: HttpRequest) -> list[tuple[str, Any]]:
    """For how long the reader may have only one person answered; none where he may not."""
    is_group = session.platform == ONEBOT and session.kind == ChatSession.Kind.GROUP
    if not is_group or not may(request, STEERING_ACTS["only"]):
        return []
    return [(span, words) for span, (words, _time) in SPANS.items()]


def find_only_owner(account: str) -> str:
    """Who owns ``account``; "" where nobody does, or several do."""
    serving = get_serving()
    owners = serving.steering.find_owners(account) if serving and serving.steering else ()
    return next(iter(owners)) if len(owners) == 1 else ""
