"""Why the bot spoke or kept silent, in words. Runs in the database thread, in the language of the
chat."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext

from agent.commands.call import CommandCall, join_words, tell_end
from agent.domain.answer_triggers import OF_ROWS
from agent.domain.budgets import cost_words
from agent.domain.event_rules import KINDS
from agent.domain.failures import find_own_link, run_page
from agent.domain.states import ApprovalState, MessageReason, MessageState, PauseReason, RunState
from agent.llm.errors.error_words import explain_model_error
from agent.record.runs.why import ApprovalFacts, HeardFacts, RunFacts, SentFacts, WhyFacts, load_why
from agent.record.waiting.take_overs import find_end
from tools.text.fences import FenceKind, clean_name

Reason, State = MessageReason, MessageState
#: States whose detail says nothing of what went wrong inside.
OF_NO_ANSWER = frozenset({State.SILENT, State.RECORDED, State.EXPIRED})
ERROR_CHARS, LISTED = 200, 20


def explain(call: CommandCall) -> str:
    """The message that is quoted, or else the newest answer."""
    facts = load_why(call.session_pk, call.message.quoted_id, call.message_pk)
    if facts is None:
        return (
            gettext("That message is not known here.")
            if call.message.quoted_id
            else gettext("I have not said anything here yet.")
        )
    lines = (*tell_facts(facts, is_owner=call.is_owner), _tell_end(call, facts.heard))
    return "\n".join(filter(None, lines))


def _tell_end(call: CommandCall, heard: HeardFacts | None) -> str:
    """When what kept the bot silent ends by itself, where it is still so."""
    reason = heard.reason if heard is not None else None
    if reason == Reason.TAKEN_OVER:
        return tell_end(find_end(call.session_pk))
    if reason == Reason.SILENCED:
        manners = call.load_manners()
        is_silent = manners.find_silence(timezone.now())
        return tell_end(manners.silenced_until if is_silent else None)
    if reason == Reason.ONLY_ONE:
        manners = call.load_manners()
        return tell_end(manners.only_until if manners.find_only(timezone.now()) else None)
    return ""


def tell_facts(facts: WhyFacts, *, is_owner: bool) -> Iterator[str]:
    """Line by line; what went wrong inside, and where to read more, is for owners."""
    run = facts.run
    if facts.heard is not None:
        yield from _heard(facts.heard, is_owner=is_owner)
    elif facts.is_by_hand:
        yield gettext("An operator wrote this, not I.")
    elif facts.foreign_run is not None:
        yield gettext("I was told to say this from another chat.")
    elif run is None:
        yield gettext("Why I said this is not on record any more.")
    if run is not None:
        yield from _run(run, is_owner=is_owner)
        yield _sent(run.sent or facts.sent, is_owner=is_owner)
        if run.undone is not None:
            values = {"who": run.undone[0] or "-", "time": _time(run.undone[1])}
            yield gettext("It was taken back by %(who)s, %(time)s.") % values
    else:
        yield _sent(facts.sent, is_owner=is_owner)
    link = run.pk if run is not None else facts.foreign_run
    if is_owner and link is not None:
        yield gettext("The run: %(address)s") % {"address": run_address(link)}


def run_address(run_pk: int) -> str:
    """The page of a run: with the address of the installation where that is known."""
    path = run_page(run_pk)
    return find_own_link(path) or path


def _heard(heard: HeardFacts, *, is_owner: bool) -> Iterator[str]:
    name = clean_name(heard.sender_name)
    who = f"{name} ({heard.sender_id})" if name else heard.sender_id
    if heard.reminder:
        yield _reminder(heard, who)
    elif heard.rule is not None and heard.reason == Reason.EVENT:
        values = {"time": _time(heard.at), "event": dict(KINDS)[heard.rule.kind], "who": who or "-"}
        yield gettext("%(time)s, an event: %(event)s (%(who)s).") % values
    else:
        yield gettext("%(time)s, message of %(who)s.") % {"time": _time(heard.at), "who": who}
    why = str(heard.reason.label) if heard.reason is not None else "-"
    if heard.is_merged:
        yield gettext("Answered together with a later message of the same person.")
    elif heard.state in (State.ANSWERED, State.WAITING, State.RUNNING):
        now = {
            State.ANSWERED: gettext("Answered: %(why)s."),
            State.WAITING: gettext("To be answered: %(why)s."),
            State.RUNNING: gettext("Being answered: %(why)s."),
        }
        yield now[heard.state] % {"why": why}
    elif heard.state == State.FAILED:
        yield gettext("The answer failed; it was to be answered: %(why)s.") % {"why": why}
    else:
        yield gettext("Not answered: %(why)s.") % {"why": why}
    yield _detail(heard, is_owner=is_owner)
    if heard.rule is not None:
        yield gettext("By the row “%(row)s”.") % {"row": heard.rule.name}
        if broader := dict.fromkeys(heard.rule.said_by.values()):
            rows = join_words(f"“{name}”" for name in broader)
            yield gettext("What it leaves empty is from %(rows)s.") % {"rows": rows}
    yield _media(heard.media)


def _reminder(heard: HeardFacts, who: str) -> str:
    """Who set it, and when; the row may have been erased."""
    number, at = heard.reminder, _time(heard.set_at) if heard.set_at else "-"
    text = gettext("Reminder #%(number)d, which %(who)s set at %(time)s.")
    return text % {"number": number, "who": who or "-", "time": at}


def _detail(heard: HeardFacts, *, is_owner: bool) -> str:
    detail = "" if heard.rule and heard.state == State.ANSWERED else heard.detail[:ERROR_CHARS]
    if not detail or not (is_owner or heard.state in OF_NO_ANSWER):
        return ""
    if heard.reason == Reason.TAKEN_OVER:
        return gettext("Taken over by %(name)s.") % {"name": detail} if is_owner else ""
    if heard.reason in OF_ROWS:
        return gettext("By the row “%(row)s”.") % {"row": detail}
    if heard.reason == Reason.PAUSED and detail in PauseReason.values:
        return str(PauseReason(detail).label)
    return _words(detail)


def _words(error: str) -> str:
    """A text on record in the language of the chat, where it has words."""
    told = explain_model_error(error)
    return told.sentence if told else gettext(error)


def _media(media: Mapping[str, int]) -> str:
    names = {
        "image": gettext("pictures"),
        "record": gettext("voice messages"),
        "video": gettext("videos"),
        "file": gettext("files"),
    }
    read = [f"{names.get(kind, kind)} {count}" for kind, count in media.items()]
    return gettext("In it: %(media)s.") % {"media": join_words(read)} if read else ""


def _run(run: RunFacts, *, is_owner: bool) -> Iterator[str]:
    models = join_words(run.models[:LISTED])
    if run.model_calls or models:
        yield gettext("Persona: %(persona)s. Model: %(models)s (calls: %(calls)d).") % {
            "persona": run.persona or "-",
            "models": models or "-",
            "calls": run.model_calls,
        }
        costs = [cost_words(nano, currency) for currency, nano in run.costs.items()]
        tokens = f"{run.input_tokens:,} + {run.output_tokens:,}"
        yield gettext("Tokens: %(tokens)s.") % {"tokens": " · ".join([tokens, *costs])}
        yield _shown(run)
    else:
        yield gettext("No model was asked.")
    calls = [
        f"{name} ({state.label})" + (f" ×{count}" if count > 1 else "")
        for name, state, count in run.tools[:LISTED]
    ]
    if calls:
        yield gettext("Tools: %(tools)s.") % {"tools": join_words(calls)}
    yield from map(_approval, run.approvals[:LISTED])
    if run.state == RunState.STOPPED:
        yield gettext("It was stopped.")
    if run.error:
        yield (
            gettext("It went wrong: %(error)s") % {"error": _words(run.error)[:ERROR_CHARS]}
            if is_owner
            else gettext("It went wrong.")
        )


def _shown(run: RunFacts) -> str:
    """What the model was shown besides the message."""
    if run.history is None:
        return ""
    names = {
        FenceKind.SUMMARY: gettext("a summary"),
        FenceKind.MEMORY: gettext("notes"),
        FenceKind.AMBIENT: gettext("other messages of the group"),
        FenceKind.QUOTED: gettext("the quoted message"),
        FenceKind.FORWARDED: gettext("forwarded messages"),
    }
    shown = [names[kind] for kind in names if kind in run.shown]
    history = gettext("%(count)d earlier messages") % {"count": run.history}
    return gettext("Shown to the model: %(shown)s.") % {"shown": join_words([history, *shown])}


def _approval(approval: ApprovalFacts) -> str:
    values = {
        "tool": approval.tool_name,
        "who": approval.decided_by or "-",
        "time": _time(approval.decided_at) if approval.decided_at else "-",
    }
    match approval.state:
        case ApprovalState.APPROVED:
            return gettext("%(tool)s was allowed by %(who)s, %(time)s.") % values
        case ApprovalState.REFUSED:
            return gettext("%(tool)s was refused by %(who)s, %(time)s.") % values
        case ApprovalState.EXPIRED:
            return gettext("%(tool)s: nobody decided in time.") % values
        case _:
            return gettext("%(tool)s waits for an owner.") % values


def _sent(sent: Sequence[SentFacts], *, is_owner: bool) -> str:
    """What was sent, and what the client said of it."""
    if not sent:
        return gettext("I sent nothing.")
    said = [
        f"{_time(one.at)} {one.state.label}"
        + (f" ({one.error[:ERROR_CHARS]})" if one.error and is_owner else "")
        for one in sent[:LISTED]
    ]
    return gettext("Sent: %(sent)s.") % {"sent": join_words(said)}


def _time(at: datetime) -> str:
    return timezone.localtime(at).strftime("%m-%d %H:%M:%S")
