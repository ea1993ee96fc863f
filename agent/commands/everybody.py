"""The commands for everybody: what they do, and what is said then. They run in the database
thread, in the language of the chat."""

from django.utils import timezone
from django.utils.translation import gettext

from agent.commands.call import CommandCall, describe_command, join_words, tell_end
from agent.domain.budgets import cost_words
from agent.domain.commands import CommandName
from agent.record.chats.chat_resets import reset_context
from agent.record.sums.budgets import BudgetUse
from agent.record.sums.chat_status import AnswersGiven, ChatStatus, load_status


def tell_help(call: CommandCall) -> str:
    """The commands that the sender may use."""
    lines = [gettext("What I can be told here:")]
    lines += [
        describe_command(name, call.manners.command_prefix)
        for name in CommandName
        if call.may_give(name)
    ]
    return "\n".join(lines)


def reset_chat(call: CommandCall) -> str:
    reset_context(call.session_pk, call.message_pk)
    return gettext("A fresh start: I no longer look at what was said before. Nothing was deleted.")


def tell_stopped(call: CommandCall) -> str:
    if call.has_stopped:
        return gettext("Stopped.")
    if call.is_manager:
        return gettext("No answer was under way here.")
    return gettext(
        "No answer to you was under way here. Those to others can be stopped by my owners and by "
        "the owner and the administrators of this group."
    )


def tell_status(call: CommandCall) -> str:
    status = load_status(call.services.quotas, call.chat, call.message.sender_id, call.session_pk)
    costs = (cost_words(nano, currency) for currency, nano in status.spent.costs.items())
    spent = [f"{status.spent.tokens:,}", *costs]
    lines = [
        gettext("Persona: %(persona)s. Model: %(model)s.")
        % {"persona": call.persona.name, "model": call.services.name_model(call.persona)},
        _answers(gettext("Your answers"), status.person),
        _answers(gettext("Answers in this chat"), status.chat) if call.chat.kind == "group" else "",
        gettext("Your tokens today: %(spent)s.") % {"spent": join_words(spent)},
        *map(_tell_stop, status.stops),
        _may_speak(call, status),
        gettext("Connected.")
        if call.services.outbox.is_connected(call.chat)
        else gettext("Not connected."),
    ]
    return "\n".join(filter(None, lines))


def _answers(whose: str, given: AnswersGiven | None) -> str:
    if given is None:
        return gettext("%(whose)s: without a limit.") % {"whose": whose}
    spans = [
        gettext("%(count)d of %(limit)d in a minute")
        % {"count": given.in_minute, "limit": given.per_minute}
        if given.per_minute
        else "",
        gettext("%(count)d of %(limit)d today") % {"count": given.of_day, "limit": given.per_day}
        if given.per_day
        else gettext("%(count)d today") % {"count": given.of_day},
    ]
    return gettext("%(whose)s: %(counts)s.") % {
        "whose": whose,
        "counts": join_words(filter(None, spans)),
    }


def _tell_stop(use: BudgetUse) -> str:
    """Without the name of the budget: it is for owners."""
    text = gettext("Too little may still be spent for an answer: %(shortage)s. Now: %(then)s.")
    shortage = use.shortage.words if use.shortage else ""
    return text % {"shortage": shortage, "then": use.terms.action.label}


def _may_speak(call: CommandCall, status: ChatStatus) -> str:
    said = []
    if status.taken_over_at is not None:
        since = timezone.localtime(status.taken_over_at).strftime("%m-%d %H:%M")
        said.append(gettext("An operator answers here, since %(time)s.") % {"time": since})
        said.append(tell_end(status.taken_over_until))
    manners = call.load_manners()
    if row := manners.find_silence(timezone.now()):
        said.append(gettext("This chat is silenced, by “%(row)s”.") % {"row": row})
        said.append(tell_end(manners.silenced_until))
    if only := manners.find_only(timezone.now()):
        said.append(gettext("Only %(person)s is answered here.") % {"person": only})
        said.append(tell_end(manners.only_until))
    if status.pause is not None:
        until = timezone.localtime(status.paused_until) if status.paused_until else None
        said.append(
            gettext("I cannot speak here: %(reason)s, until %(time)s.")
            % {"reason": status.pause.label, "time": until.strftime("%m-%d %H:%M")}
            if until
            else gettext("I cannot speak here: %(reason)s.") % {"reason": status.pause.label}
        )
    return " ".join(filter(None, said))
