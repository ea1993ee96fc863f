"""Acts that say who answers in a chat: take over, hand back, silence, reset, persona, cancel."""

from datetime import datetime, timedelta
from functools import partial

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext

from agent.admin.chats.act_basics import CHANGE, MANNERS, SPEAK, Act, ActCall, ActDone, ActRefused
from agent.domain.operator_acts import ActKind
from agent.domain.states import MessageReason
from agent.models import ChatSession, Message, Run
from agent.record.chats.chat_resets import reset_context
from agent.record.settings.chat_choices import choose_persona, list_personas
from agent.record.settings.chat_manners import find_chat_manners
from agent.record.settings.manners import ONEBOT, load_manners_table
from agent.record.settings.timed_silences import end_silence, silence_chat
from agent.record.waiting.hand_messages import find_address
from agent.record.waiting.operator_acts import record_act
from agent.record.waiting.pauses import PauseLift, lift_pauses
from agent.record.waiting.stops import StopRequest, stop_runs
from agent.record.waiting.take_overs import hand_back, take_over
from agent.runtime.serving import get_serving

#: After how many hours a take-over ends by itself; 0 for never. The first is chosen already.
HOURS = (12, 1, 4, 24, 72, 0)


def _take_over(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    end = _chosen_end(call.posted("hours"))
    stopped = take_over(call.session.pk, call.author, end)
    chat = find_address(call.session)
    words = gettext("You have taken over: what is said to the bot here is yours to answer.")
    if end is not None:
        at = date_format(timezone.localtime(end), "DATETIME_FORMAT")
        words += " " + gettext("It ends by itself at %(time)s.") % {"time": at}
    return ActDone(words, partial(_let_go, chat, stopped, MessageReason.TAKEN_OVER), "compose")


def _chosen_end(hours: str) -> datetime | None:
    if hours not in {str(one) for one in HOURS}:
        raise ActRefused(gettext("Choose how long you take over."))
    return timezone.now() + timedelta(hours=int(hours)) if int(hours) else None


def _hand_back(call: ActCall) -> ActDone:
    if not hand_back(call.session.pk, call.author):
        raise ActRefused(gettext("The bot answers here already: nobody has taken over."))
    return ActDone(gettext("The bot answers here again, from the next message on."))


def _silence(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    silence_chat(find_address(call.session), None, call.author)
    record_act(ActKind.SILENCE, call.session.pk, call.author)
    return ActDone(gettext("Silenced this chat."))


def _speak(call: ActCall) -> ActDone:
    """Take the silence out of the row for this chat alone; those for others too stay."""
    _only_onebot(call.session)
    chat = find_address(call.session)
    own, words = find_chat_manners(chat), ""
    if own is not None and own.is_silencing:
        end_silence(chat, call.author)
        record_act(ActKind.SPEAK, call.session.pk, call.author)
        words = gettext("Let this chat speak.")
    if still := load_manners_table().find(chat).find_silence(timezone.now()):
        text = gettext("It is still silenced by “%(name)s”, which is for other chats too.")
        return ActDone(words, warning=text % {"name": still})
    return ActDone(words or gettext("This chat is not silenced."))


def _lift(call: ActCall) -> ActDone:
    if not lift_pauses(PauseLift(find_address(call.session))):
        raise ActRefused(gettext("The account can speak here already."))
    record_act(ActKind.LIFT, call.session.pk, call.author)
    return ActDone(gettext("The account can speak here again, from the next message on."))


def _reset(call: ActCall) -> ActDone:
    newest = Message.objects.filter(session=call.session).order_by("-pk").first()
    if newest is None:
        raise ActRefused(gettext("Nothing was said here yet."))
    reset_context(call.session.pk, newest.pk)
    record_act(ActKind.RESET, call.session.pk, call.author, message=newest)
    return ActDone(gettext("The context is fresh: the model sees nothing of what was said before."))


def _choose_persona(call: ActCall) -> ActDone:
    _only_onebot(call.session)
    names, chosen = {str(one.pk): one.name for one in list_personas()}, call.posted("persona")
    if chosen and chosen not in names:
        raise ActRefused(gettext("This persona is not there any more, or is switched off."))
    pk = int(chosen) if chosen else None
    choose_persona(find_address(call.session), pk, call.author)
    record_act(ActKind.PERSONA, call.session.pk, call.author, detail=names.get(chosen, ""))
    if not chosen:
        return ActDone(gettext("From the next message on, nobody is chosen for this chat alone."))
    words = gettext("From the next message on, %(name)s answers here.")
    return ActDone(words % {"name": names[chosen]})


def _cancel(call: ActCall) -> ActDone:
    message = call.message
    if message is None or message.reason == MessageReason.COMMAND:
        raise ActRefused(gettext("This cannot be cancelled."))
    pk = message.merged_into_id or message.pk
    if not stop_runs(StopRequest(pk, MessageReason.STOPPED)).is_stopped:
        raise ActRefused(gettext("There is nothing to cancel: the answer has ended already."))
    run = Run.objects.filter(message=pk, parent=None).order_by("-pk").first()
    record_act(ActKind.CANCEL, call.session.pk, call.author, message=message, run=run)
    then = partial(_let_go, find_address(call.session), [pk], MessageReason.STOPPED)
    return ActDone(gettext("The answer was cancelled."), then, f"m{message.pk}")


def _let_go(chat: object, pks: list[int], reason: MessageReason) -> None:
    """Have the server of this process stop at once; others stop at their next step."""
    if pks and (serving := get_serving()) is not None:
        serving.steer(lambda steering: steering.let_go(chat, pks, reason))  # type: ignore[arg-type]


def _only_onebot(session: ChatSession) -> None:
    if session.platform != ONEBOT:
        raise ActRefused(gettext("This is no chat of an account."))


STEERING_ACTS = {
    "take-over": Act(_take_over),
    "hand-back": Act(_hand_back),
    "silence": Act(_silence, (MANNERS, SPEAK)),
    "speak": Act(_speak, (MANNERS, SPEAK)),
    "lift": Act(_lift, (CHANGE,)),
    "reset": Act(_reset, (CHANGE,)),
    "persona": Act(_choose_persona, (CHANGE,)),
    "cancel": Act(_cancel, on_message=True),
}


def hours_in_words(hours: int) -> str:
    if not hours:
        return gettext("until I hand back")
    return ngettext("for %(count)d hour", "for %(count)d hours", hours) % {"count": hours}
