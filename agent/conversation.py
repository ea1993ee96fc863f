"""One message, from the inbox to the recorded outcome, in one screen."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.allowance import Allowance
from agent.decisions import parse_word
from agent.discoveries import Discoveries
from agent.engine import Engine
from agent.errors import AgentError, ClaimLost, RunTimeout, apology
from agent.flow import End, Flow, Pauses
from agent.history import fit
from agent.jobs import Jobs
from agent.journal import RunJournal
from agent.later import LaterCalls
from agent.llm.base import ToolCallRequest
from agent.media.senses import Gathering, Reading, Senses
from agent.memory.background import Background
from agent.memory.mind import Memory
from agent.models import Message, Run
from agent.notices import NOTICES, notice
from agent.persona import chat_prompt, prompt_notes
from agent.prompt import ChatMessage, Speech, outcome_message, system_message, user_message
from agent.record import Record
from agent.replies import final_parts
from agent.speaker import Speaker
from agent.state import ChatState
from agent.store.approvals import Decision, Ruling
from agent.store.recovery import Left
from agent.store.replies import Ending, Outcome
from agent.store.runs import Beginning, Begun, Plan
from agent.task import Result, Task
from agent.types import IncomingMessage, Outbox
from tools.contract import ToolExecutionContext, ToolExecutionResult
from tools.limits import time_limit
from tools.log_limit import LogLimit

logger = logging.getLogger(__name__)
LogLimit(logger)
State = Message.State

#: Why nothing was said, where a tool decided that.
SILENCE = {
    End.STAY_SILENT.value: gettext_noop("the model chose to stay silent"),
    End.NO_ACTION.value: gettext_noop("the model chose to do nothing until the next message"),
    End.FINISH.value: gettext_noop("the model ended its turn without a word"),
}
ANSWER_CUT = gettext_noop("The answer was cut: it was longer than what one run may still say.")
Watch = Callable[[ToolCallRequest, ToolExecutionResult], None]


class Verdict(NamedTuple):
    """How an answered message ends on record."""

    state: Message.State
    detail: str
    in_history: bool


@dataclass(slots=True)
class Conversations:
    """Answers messages; holds nothing that belongs to one of them."""

    record: Record
    engine: Engine
    outbox: Outbox
    jobs: Jobs
    origin: Run.Origin = Run.Origin.CHAT
    watch: Watch | None = field(default=None)
    senses: Senses | None = field(default=None)
    pauses: Pauses = field(default_factory=Pauses)
    memory: Memory | None = field(default=None)

    def plan(self, message: IncomingMessage) -> Plan:
        """The run that would answer ``message``."""
        history_messages = settings.MAX_CONTEXT_MESSAGES - 2  # the system message and the current one come on top
        return Plan(self.origin, self.engine.model.name, history_messages, message.chat.key, message.chat.place)

    def attend(self, left: Left) -> Gathering | None:
        """Begin to fetch what a message that will be answered holds; None where that is nothing."""
        return self.senses.attend(left) if self.senses and not left.notice else None

    async def answer(
        self, left: Left, begun: Begun | None = None, *, resumed: bool = False, gathering: Gathering | None = None
    ) -> None:
        """Bring the message to a recorded end. When cancelled, it can be taken up where it was.

        ``begun`` is its run where that is on record already; ``resumed`` says that an
        earlier one may have been left; ``gathering`` is what :meth:`attend` began. Raises
        :class:`ClaimLost` when the message is in other hands, and otherwise what kept the
        end from being recorded: then the message is still to be answered.
        """
        message = left.message
        if begun is None:
            wish = Beginning(self.plan(message), left.pk, left.session_pk, resumed, left.is_later_result, left.claim_number)
            begun = await self.record.begin(wish)
        speaker = Speaker(
            RunJournal(self.record, begun.claim),
            self.outbox,
            message.chat,
            session_pk=left.session_pk,
            temp_group_id=message.temp_group_id,
        )
        speaker.has_spoken, speaker.has_replied = begun.has_spoken, begun.has_replied
        speaker.allowance = Allowance(*begun.said)
        if begun.answer is not None:
            await self._settle_recorded(left, begun, speaker)
            return
        if left.notice:
            await self._notify(left, begun, speaker)
            return
        noted: list[str] = []
        try:
            result = _nothing_to_tell(begun) or await self._ruled(left)
            result = result or await self._run(left, begun, speaker, noted, gathering)
        except ClaimLost:
            raise
        except AgentError as error:
            await self._fail(left, begun, speaker, str(error), noted)
        except Exception as error:  # the boundary of a run: a bug in it costs one answer, not the chat
            logger.exception("Run %s failed", begun.run_pk)
            await self._fail(left, begun, speaker, f"{type(error).__name__}: {error}", noted)
        else:
            await self._conclude(left, begun, speaker, result, noted)

    async def _ruled(self, left: Left) -> Result | None:
        """The answer to a message that decides over a waiting call; None for every other message."""
        message = left.message
        word = None if left.is_later_result else parse_word(message.text)
        if word is None:
            return None
        is_owner = message.sender_id in self.outbox.owners(message.chat)
        ruling, fault = await self.record.rule(Decision(word, message.chat.account, message.sender_id, is_owner))
        if ruling is Ruling.UNKNOWN and not is_owner:
            return None
        if ruling in (Ruling.APPROVED, Ruling.REFUSED):
            self.jobs.wake(message.chat.account)
        return Result(ruling_text(ruling, word.code, fault), None, 0, 0, 0)

    async def _run(self, left: Left, begun: Begun, speaker: Speaker, noted: list[str], gathering: Gathering | None) -> Result:
        """The result of the loop; what was left out is added to what is ``noted``."""
        try:
            async with time_limit(settings.RUN_TIMEOUT) as limit:
                reading = await self._perceived(left, begun, gathering)
                noted += reading.notes
                task = await self._task(left, begun, speaker, noted, reading)
                return await self.engine.run(task, speaker.journal)
        except TimeoutError as error:
            if limit.expired():
                raise RunTimeout(f"the run took longer than {settings.RUN_TIMEOUT:g} s") from error
            raise

    async def _perceived(self, left: Left, begun: Begun, gathering: Gathering | None) -> Reading:
        """What is in the message beside words; nothing again for a run whose first request is on record."""
        if self.senses is None or left.is_later_result or begun.steps:
            return Reading()
        return await self.senses.perceive(left, gathering)

    async def _task(self, left: Left, begun: Begun, speaker: Speaker, noted: list[str], reading: Reading) -> Task:
        """What the loop is to do; what was left out is added to what is ``noted``."""
        message, can_see = left.message, settings.VISION_MODE != "describe"
        owners = self.outbox.owners(message.chat)
        later = LaterCalls(speaker.journal, self.jobs, speaker, session_pk=left.session_pk, owners=owners, can_see=can_see)
        context = tool_context(message, speaker, owners, later, ChatState(left.session_pk, begun.state), self.pauses)
        context.metadata["memory"] = self.memory and self.memory.notebook
        prompt = await chat_prompt(settings.SYSTEM_PROMPT, context, self.engine.registry)
        noted += prompt_notes(prompt)
        background = await self._background(left, begun)
        return Task(
            run_pk=begun.run_pk,
            messages=first_request(message, begun, prompt.text, reading, background),
            context=context,
            model_calls=settings.MAX_ITERATIONS,
            can_see=can_see,
            steps=begun.steps,
            later=begun.later,
            watch=self.watch,
            is_gated=self._is_gated(left, begun),
            discoveries=Discoveries(left.session_pk, begun.discovered),
            has_spoken=lambda: speaker.has_spoken,
        )

    async def _background(self, left: Left, begun: Begun) -> Background:
        """What the model should have in mind; nothing again for a run whose first request is on record."""
        message = left.message
        if self.memory is None or begun.steps:
            return Background()
        return await self.memory.background(
            left.session_pk, message.chat, message.sender_id, message.text, has_notes=begun.has_notes
        )

    def _is_gated(self, left: Left, begun: Begun) -> bool:
        """Whether the timing gate comes first: it is on here, and no continuation is active."""
        if left.is_later_result or begun.gate.is_continuing:
            return False
        return self.outbox.attention(left.message.chat).timing_gate if begun.gate.is_on is None else begun.gate.is_on

    async def _conclude(self, left: Left, begun: Begun, speaker: Speaker, result: Result, noted: list[str]) -> None:
        text = result.text.strip()
        outcome = None
        if text and not speaker.has_replied:
            if (fitted := speaker.allowance.fitted(text)) != text:
                text, noted = fitted, [*noted, ANSWER_CUT]
            outcome = await speaker.answer(final_parts(left.message, text), text, result.last_step)
        verdict = _verdict(outcome, speaker, result)
        continues = result.ended_by == End.NO_ACTION and result.planned > 0
        if continues != begun.gate.is_continuing:
            await speaker.journal.set_continuing(left.session_pk, continues)
        await speaker.journal.finish(
            Ending(
                run_pk=begun.run_pk,
                run_state=Run.State.FINISHED,
                message_pk=left.pk,
                final_text=text,
                error="out of model calls" if result.out_of_calls else "",
                notes=[*noted, *result.notes],
                model_calls=result.calls,
                input_tokens=result.input_tokens,
                output_tokens=result.output_tokens,
                step=None if outcome else result.last_step,
                outcome=outcome,
                message_state=verdict.state,
                detail=verdict.detail,
                in_history=verdict.in_history and not left.is_later_result,  # nobody said it
            )
        )
        if self.memory is not None:
            self.memory.after_turn(left.session_pk, left.message.chat)

    async def _notify(self, left: Left, begun: Begun, speaker: Speaker) -> None:
        """Tell the chat in one sentence why there is no answer. No model is asked, and nothing becomes history."""
        words = notice(left.notice, left.message.text)
        outcome = await speaker.answer(final_parts(left.message, words), words)
        await speaker.journal.finish(
            Ending(
                run_pk=begun.run_pk,
                run_state=Run.State.FINISHED,
                message_pk=left.pk,
                message_state=State.SILENT,
                detail=left.notice if left.notice in NOTICES else "",
                final_text=words,
                outcome=Outcome(outcome.pk, outcome.delivery, is_speech=False),
            )
        )

    async def _fail(self, left: Left, begun: Begun, speaker: Speaker, error: str, noted: list[str]) -> None:
        """Tell the chat in one neutral sentence, and the operator in the record."""
        logger.warning("Message %s was not answered: %s", left.pk, error)
        words = apology(left.message.text)
        outcome = await speaker.answer(final_parts(left.message, words), words)
        await speaker.journal.finish(
            Ending(
                run_pk=begun.run_pk,
                run_state=Run.State.FAILED,
                message_pk=left.pk,
                message_state=State.FAILED,
                detail=error,
                error=error,
                notes=noted,
                outcome=Outcome(outcome.pk, outcome.delivery, is_speech=False),
            )
        )

    async def _settle_recorded(self, left: Left, begun: Begun, speaker: Speaker) -> None:
        """Finish a run whose final message an earlier process had put on record."""
        answer = begun.answer
        assert answer is not None  # noqa: S101 - the caller's condition
        outcome = None
        if answer.state == State.PENDING:
            outcome = await speaker.answer_again(answer.pk, answer.segments)
            failed = outcome.delivery.state == State.FAILED
        else:
            failed = answer.state == State.FAILED
        await speaker.journal.finish(
            Ending(
                run_pk=begun.run_pk,
                run_state=Run.State.FINISHED,
                message_pk=left.pk,
                message_state=State.SILENT if left.notice else State.FAILED if failed else State.ANSWERED,
                detail=answer.error if failed else left.notice if left.notice in NOTICES else "",
                final_text=answer.text,
                outcome=outcome,
                in_history=not failed and not left.is_later_result and not left.notice,
            )
        )


def _nothing_to_tell(begun: Begun) -> Result | None:
    return Result("", None, 0, 0, 0) if begun.later and begun.later.is_stale else None


def _verdict(outcome: Outcome | None, speaker: Speaker, result: Result) -> Verdict:
    """How the message answered ends, from what came of the answer."""
    if outcome is not None and outcome.delivery.state == State.FAILED:
        return Verdict(State.FAILED, outcome.delivery.error, speaker.has_spoken)
    state = State.ANSWERED if outcome is not None or speaker.has_spoken else State.SILENT
    detail = SILENCE.get(result.ended_by, "") if state == State.SILENT else ""
    return Verdict(state, detail, state == State.ANSWERED)


def ruling_text(ruling: Ruling, code: str, fault: str) -> str:
    """What whoever decided is told."""
    match ruling:
        case Ruling.APPROVED:
            return f"已批准 {code}，正在执行。"
        case Ruling.REFUSED:
            return f"已拒绝 {code}。"
        case Ruling.NOT_AN_OWNER:
            return f"只有机器人主人可以处理 {code}。"
        case Ruling.NOT_SHOWN:
            return f"{code} 的参数没有全部显示在会话中，不能在这里批准。请在管理后台查看全部参数后处理，或在这里回复「拒绝 {code}」。"
        case Ruling.FAULTY:
            return f"{code} 的参数有误，仍在等待：\n{fault}"
        case Ruling.UNKNOWN:
            return f"没有等待批准的调用 {code}，它可能已经处理过，或者已经过期。"


def first_request(
    message: IncomingMessage, begun: Begun, prompt: str, reading: Reading, background: Background
) -> list[ChatMessage]:
    """What the model is sent first: the persona's ``prompt``, fitted history, and the framed words or what they stand for."""
    speech = Speech(
        message.text.strip(),
        message.sender_id,
        message.sender_name,
        message.chat.key,
        message.message_id,
        message.happened_at,
        reading.text,
        reading.pictures,
    )
    request = fit(
        system_message(prompt),
        begun.history,
        outcome_message(speech, begun.later.tool_name) if begun.later else user_message(speech),
        max_messages=settings.MAX_CONTEXT_MESSAGES - background.count,
        max_chars=settings.MAX_CONTEXT_CHARS - background.size,
    )
    return background.around(request)


def tool_context(
    message: IncomingMessage, speaker: Speaker, owners: frozenset[str], later: LaterCalls, state: ChatState, pauses: Pauses
) -> ToolExecutionContext:
    """Where tools of this run act: the chat of the message, on behalf of its sender."""
    chat = message.chat
    is_group = chat.kind == "group"
    return ToolExecutionContext(
        session_id=chat.address,
        stream_id=chat.address,
        is_group_chat=is_group,
        group_id=chat.peer_id if is_group else "",
        user_id=message.sender_id,
        platform=chat.platform,
        metadata={
            "speaker": speaker,
            "later": later,
            "flow": Flow(),
            "pauses": pauses,
            "chat_state": state,
            "account": chat.account,
            "message_id": message.message_id,
            "owners": owners,
            "sender_role": message.sender_role,
        },
    )
