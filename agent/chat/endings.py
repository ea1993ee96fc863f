"""How the run of a message ends: what is sent, and what is put on record."""

import logging
from dataclasses import dataclass, replace

from django.utils import timezone
from django.utils.translation import gettext_noop

from agent.chat.message_run import MessageRun
from agent.chat.speaking import Speaker, say_sentence
from agent.domain.errors import BudgetSpent, build_apology, build_refusal_apology
from agent.domain.failures import (
    FailureKind,
    is_refused,
    owner_note,
    refusal_kind,
    run_page,
)
from agent.domain.notices import (
    NOTICES,
    notice_text,
    outcome_sentence,
    shortage_sentence,
)
from agent.domain.reminders import FiredReminder
from agent.domain.states import MessageReason, MessageState, RunState
from agent.domain.types import MessagePart
from agent.memory.service import MemoryService
from agent.record.record import Record
from agent.record.runs.deferred_calls import load_call_outcome
from agent.record.runs.recorded_answers import RecordedAnswer
from agent.record.runs.replies import RunCompletion, SendResult
from agent.record.sums.failures import report_failure
from agent.record.sums.tallies import chat_subject, take_notice_of_day
from agent.run.message_sender import NOT_CONNECTED, MessageSender
from agent.run.task import RunResult, only_repeats
from agent.run.tool_results import EndReason
from tools.error_boundary import LogLimit

State = MessageState

#: Why no answer was sent, if a tool decided that.
SILENCE = {
    EndReason.STAY_SILENT.value: gettext_noop("the model chose to stay silent"),
    EndReason.NO_ACTION.value: gettext_noop("the model chose to do nothing until the next message"),
    EndReason.FINISH.value: gettext_noop("the model ended its turn without a word"),
}


def answer_outcome(
    sent: SendResult | None, sender: MessageSender, result: RunResult
) -> tuple[MessageState, str, bool]:
    """How the message answered ends on record, from what came of the answer: its state, the detail,
    and whether it is history."""
    if sent is not None and sent.delivery.state == State.FAILED:
        return State.FAILED, sent.delivery.error, sender.has_spoken
    state = State.ANSWERED if sent is not None or sender.has_spoken else State.SILENT
    detail = SILENCE.get(result.ended_by, "") if state == State.SILENT else ""
    return state, detail, state == State.ANSWERED


logger = logging.getLogger(__name__)
LogLimit(logger)

REPEATED = gettext_noop("The answer was not sent: it only repeats what the run had sent before.")
SILENCED = gettext_noop("The outcome was not told: the chat is silenced.")
NOT_REPEATED = gettext_noop("No apology was sent: the chat had one within the last minute.")


@dataclass(frozen=True, slots=True)
class RunEndings:
    """Ends runs of messages; holds nothing that belongs to one of them."""

    record: Record
    speaker: Speaker
    memory: MemoryService | None = None
    tells_owners: bool = True
    """Whether owners are told of failures in private. At a terminal the log says it to the one who
    asks."""

    async def finish(self, run: MessageRun, result: RunResult) -> None:
        """Send what the loop came to, and record the end."""
        pending, sender, text = run.pending, run.sender, result.text.strip()
        sent = None
        if pending.reminder is not None:
            text = _told_by_model(run, pending.reminder, text)
        if run.is_silenced:
            run.notes.append(SILENCED)
        elif only_repeats(text, sender.said):
            run.notes.append(REPEATED)
        elif text and not sender.has_replied:
            text, sent = await self.speaker.say(run, text, result.last_step)
        state, detail, is_heard = answer_outcome(sent, sender, result)
        is_failed = sent is not None and sent.delivery.state == MessageState.FAILED
        if sent and is_failed and is_refused(sent.delivery, NOT_CONNECTED.error):
            await self._make_up_for(run, sent)
        continues = result.ended_by == EndReason.NO_ACTION and result.planned > 0
        if continues != run.active.gate.is_continuing:
            await sender.journal.set_continuing(pending.session_pk, continues)
        await sender.journal.finish(
            RunCompletion(
                run_pk=run.active.run_pk,
                run_state=RunState.FINISHED,
                message_pk=pending.pk,
                final_text=text,
                error="out of model calls" if result.out_of_calls else "",
                notes=[*run.notes, *result.notes],
                model_calls=result.calls,
                input_tokens=result.input_tokens,
                output_tokens=result.output_tokens,
                step=None if sent else result.last_step,
                outcome=sent,
                message_state=state,
                detail=detail,
                in_history=is_heard and not pending.is_later_result,  # never sent
            )
        )
        if self.memory is not None and self.memory.has_upkeep:
            self.memory.after_turn(pending.session_pk, run.message.chat)

    async def remind(self, run: MessageRun, reminder: FiredReminder) -> None:
        """Say a reminder without a model; nothing, in a chat that was silenced meanwhile. One that
        an earlier process put on record, and certainly did not send, is told as late."""
        if (answer := run.active.answer) is not None:
            if any(one.state != State.PENDING for one in answer.messages):
                await self.finish_recorded(run, answer)
                return
            run.sender.give_up([one.pk for one in answer.messages])
        text = ""
        if not (silence := run.silence):
            await run.sender.wait_turn()
            text = reminder.sentence(timezone.now(), run.active.manners)
        await self.tell(run, text, detail=silence)

    async def tell(
        self, run: MessageRun, text: str, picture: MessagePart | None = None, *, detail: str = ""
    ) -> None:
        """End a run that no model was asked in, with a text or a picture; ``detail`` says why there
        is neither."""
        sent = await say_sentence(run, text, picture) if text or picture else None
        spoke = State.ANSWERED if sent or run.sender.has_spoken else State.SILENT
        failed = sent is not None and sent.delivery.state == State.FAILED
        await run.sender.journal.finish(
            RunCompletion(
                run_pk=run.active.run_pk,
                run_state=RunState.FINISHED,
                message_pk=run.pending.pk,
                message_state=State.FAILED if failed else spoke,
                detail=sent.delivery.error if sent and failed else detail,
                final_text=text,
                outcome=sent,
            )
        )

    async def send_notice(self, run: MessageRun) -> None:
        """Send one sentence that says why there is no answer. No model is called; nothing enters
        the history."""
        notice = run.pending.notice
        persona = run.active.persona
        text = notice_text(notice, run.message.text, persona.language)
        sent = await say_sentence(run, text)
        await run.sender.journal.finish(
            RunCompletion(
                run_pk=run.active.run_pk,
                run_state=RunState.FINISHED,
                message_pk=run.pending.pk,
                message_state=State.SILENT,
                detail=notice if notice in NOTICES else "",
                final_text=text,
                outcome=sent,
            )
        )

    async def fail(self, run: MessageRun, error: str, kind: FailureKind) -> None:
        """Send the chat one neutral sentence, unless it has just heard it; the record keeps the
        error for the operator."""
        logger.warning("Message %s was not answered: %s", run.pending.pk, error)
        state, sent = State.FAILED, await self._apologise(run, kind)
        if sent and run.pending.reminder and sent.delivery.state != State.FAILED:
            state = State.ANSWERED
        await run.sender.journal.finish(
            RunCompletion(
                run_pk=run.active.run_pk,
                run_state=RunState.FAILED,
                message_pk=run.pending.pk,
                message_state=state,
                detail=error,
                error=error,
                notes=run.notes,
                outcome=sent,
            )
        )

    async def _apologise(self, run: MessageRun, kind: FailureKind) -> SendResult | None:
        """Tell the chat in one sentence that there is no answer, and its owners why; None where
        the chat has been told within the last minute."""
        message, path = run.message, run_page(run.active.run_pk)
        note = owner_note(kind, message.chat, message.chat_title, run.active.run_pk, path)
        owners = run.pending.account.owners if self.tells_owners else frozenset[str]()
        is_new = await self.record.submit(
            report_failure, message.chat, kind, owners, note, claim=run.active.claim
        )
        if run.pending.reminder is not None:
            return await self._say_left(run, run.pending.reminder)
        if run.pending.rule is not None and run.pending.is_later_result:
            return None  # nobody has asked
        if not is_new:
            run.notes.append(NOT_REPEATED)
            return None
        return await say_sentence(run, _apology(run, kind))

    async def _say_left(self, run: MessageRun, reminder: FiredReminder) -> SendResult | None:
        """Say the text of a task that the model left alone; None where it said something before."""
        if run.has_answered or run.is_silenced:
            return None
        return await say_sentence(run, _left_text(run, reminder))

    async def leave_to_operator(self, run: MessageRun) -> None:
        """End the run of a message that an operator answers: it was on its way already when he took
        the chat over."""
        await run.sender.journal.finish(
            RunCompletion(
                run_pk=run.active.run_pk,
                run_state=RunState.STOPPED,
                message_pk=run.pending.pk,
                message_state=State.SILENT,
                reason=MessageReason.TAKEN_OVER,
                detail=run.active.taken_over_by,
                in_history=True,
            )
        )

    async def stop(self, run: MessageRun, spent: BudgetSpent) -> None:
        """End a message for which too little of a budget is left. Once a day the chat is told so;
        what nobody asks for ends silently, but for the outcome of an earlier call, which is told
        without a model."""
        pending, has_spoken = run.pending, run.sender.has_spoken
        text = await self._words_without_model(run, spent)
        sent = await say_sentence(run, text) if text else None
        is_told = has_spoken or (pending.is_later_result and sent is not None)
        state, detail = State.ANSWERED if is_told else State.SILENT, str(spent)
        if is_told and sent is not None and sent.delivery.state == State.FAILED:
            state, detail = State.FAILED, sent.delivery.error
        await run.sender.journal.finish(
            RunCompletion(
                run_pk=run.active.run_pk,
                run_state=RunState.FINISHED,
                message_pk=pending.pk,
                message_state=state,
                reason="" if is_told or pending.is_later_result else MessageReason.BUDGET,
                detail=detail,
                final_text=text,
                notes=[*run.notes, str(spent)],
                outcome=sent,
                in_history=has_spoken and not pending.is_later_result,
            )
        )

    async def _words_without_model(self, run: MessageRun, spent: BudgetSpent) -> str:
        """What is said in a message for which no model may be asked; "" for nothing."""
        pending, words, language = run.pending, run.message.text, run.active.persona.language
        if pending.reminder is not None:
            is_said = run.has_answered or run.is_silenced
            return "" if is_said else _left_text(run, pending.reminder)
        if run.active.later is not None:
            if run.is_silenced:
                run.notes.append(SILENCED)
            if run.is_silenced or run.has_answered:
                return ""
            outcome = await self.record.submit(load_call_outcome, run.active.later.pk)
            return outcome_sentence(outcome, language)
        subject = chat_subject(run.message.chat, run.message.sender_id)
        if pending.is_later_result or not await self.record.submit(take_notice_of_day, subject):
            return ""
        return shortage_sentence(spent.shortage, words, language)

    async def _make_up_for(self, run: MessageRun, refused: SendResult) -> None:
        """Say in one sentence, tried once, that the answer was refused."""
        run.sender.journal.settle(refused)
        if refusal_kind(refused.delivery.error) != FailureKind.SENDING:
            return  # QQ would refuse that as well, and owners were told when it refused this
        apology = await self._apologise(run, FailureKind.SENDING)
        if apology is not None:
            run.sender.journal.settle(apology)

    async def finish_recorded(self, run: MessageRun, answer: RecordedAnswer) -> None:
        """Finish a run whose final answer an earlier process had put on record."""
        notice, sent = run.pending.notice, await self.speaker.resume(run, answer)
        is_apology = answer.text in {_apology(run, kind) for kind in FailureKind}
        is_reminder = run.pending.reminder is not None and not run.pending.reminder.is_task
        is_by_rule = run.pending.rule is not None and not run.pending.rule.asks_model
        is_speech = not (notice or run.pending.command or is_reminder or is_by_rule)
        states: list[State] = [one.state for one in answer.messages if one.state != State.PENDING]
        errors = [one.error for one in answer.messages if one.state == State.FAILED]
        if sent is not None:
            sent = replace(sent, is_speech=is_speech)
            states.append(sent.delivery.state)
            errors += [sent.delivery.error] if sent.delivery.state == State.FAILED else []
        is_heard = any(state != State.FAILED for state in states) and not is_apology
        answered = State.FAILED if errors or is_apology else State.ANSWERED
        await run.sender.journal.finish(
            RunCompletion(
                run_pk=run.active.run_pk,
                run_state=RunState.FINISHED,
                message_pk=run.pending.pk,
                message_state=State.SILENT if notice else answered,
                detail=errors[0] if errors else notice if notice in NOTICES else "",
                final_text=answer.text,
                outcome=sent,
                in_history=is_speech and is_heard and not run.pending.is_later_result,
            )
        )


def _told_by_model(run: MessageRun, reminder: FiredReminder, text: str) -> str:
    """What is said of a task that ``text`` is the answer to; the text of the reminder where there
    is none and nothing was said before."""
    if text:
        return reminder.late_words(run.begun_at, run.active.manners) + text
    return "" if run.has_answered or run.is_silenced else _left_text(run, reminder)


def _left_text(run: MessageRun, reminder: FiredReminder) -> str:
    return reminder.sentence(run.begun_at, run.active.manners, is_left=True)


def _apology(run: MessageRun, kind: FailureKind) -> str:
    build = build_refusal_apology if kind == FailureKind.SENDING else build_apology
    return build(run.message.text, run.active.persona.language)
