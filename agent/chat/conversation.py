"""One message, from the inbox to the recorded outcome, in one screen."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.chat.history import fit_history
from agent.chat.replies import build_final_parts
from agent.domain.approval_replies import parse_approval_reply
from agent.domain.errors import AgentError, ClaimLost, RunTimeout, build_apology
from agent.domain.notices import NOTICES, notice_text
from agent.domain.state import ChatState
from agent.domain.states import MessageState, RunOrigin, RunState
from agent.domain.types import IncomingMessage, Outbox
from agent.llm.base import ToolCallRequest
from agent.llm.messages import (
    ChatMessage,
    SpokenMessage,
    outcome_message,
    system_message,
    user_message,
)
from agent.media.pipeline import MediaPipeline, MediaText, PrefetchTask
from agent.memory.prompt_context import MemoryContext
from agent.memory.service import MemoryService
from agent.record.approvals import ApprovalDecision, ApprovalOutcome, apply_approval_decisions
from agent.record.record import Record
from agent.record.recovery import PendingMessage
from agent.record.replies import RunCompletion, SendResult
from agent.record.run_journal import RunJournal
from agent.record.runs import ActiveRun, RunPlan, StartRun
from agent.run.allowance import SendAllowance
from agent.run.deferred_calls import DeferredCalls
from agent.run.engine import Engine
from agent.run.flow import ChatPauses, EndReason, RunFlow
from agent.run.jobs import BackgroundCalls
from agent.run.message_sender import MessageSender
from agent.run.system_prompt import prompt_notes, render_chat_prompt
from agent.run.task import RunRequest, RunResult
from agent.run.toolbox import RunDiscoveries
from tools.contract import ToolExecutionContext, ToolExecutionResult
from tools.log_limit import LogLimit
from tools.registry.time_limits import time_limit

logger = logging.getLogger(__name__)
LogLimit(logger)
State = MessageState

#: Why nothing was said, where a tool decided that.
SILENCE = {
    EndReason.STAY_SILENT.value: gettext_noop("the model chose to stay silent"),
    EndReason.NO_ACTION.value: gettext_noop("the model chose to do nothing until the next message"),
    EndReason.FINISH.value: gettext_noop("the model ended its turn without a word"),
}
ANSWER_CUT = gettext_noop("The answer was cut: it was longer than what one run may still say.")
ToolCallWatcher = Callable[[ToolCallRequest, ToolExecutionResult], None]


class AnswerOutcome(NamedTuple):
    """How an answered message ends on record."""

    state: MessageState
    detail: str
    in_history: bool


@dataclass(slots=True)
class ConversationHandler:
    """Answers messages; holds nothing that belongs to one of them."""

    record: Record
    engine: Engine
    outbox: Outbox
    jobs: BackgroundCalls
    origin: RunOrigin = RunOrigin.CHAT
    watch: ToolCallWatcher | None = field(default=None)
    senses: MediaPipeline | None = field(default=None)
    pauses: ChatPauses = field(default_factory=ChatPauses)
    memory: MemoryService | None = field(default=None)

    def plan(self, message: IncomingMessage) -> RunPlan:
        """The run that would answer ``message``."""
        history_messages = (
            settings.MAX_CONTEXT_MESSAGES - 2
        )  # the system message and the current one come on top
        return RunPlan(
            self.origin,
            self.engine.model.name,
            history_messages,
            message.chat.key,
            message.chat.place,
        )

    def attend(self, left: PendingMessage) -> PrefetchTask | None:
        """Begin to fetch what a message that will be answered holds; None where that is nothing."""
        return self.senses.attend(left) if self.senses and not left.notice else None

    async def answer(
        self,
        left: PendingMessage,
        begun: ActiveRun | None = None,
        *,
        resumed: bool = False,
        gathering: PrefetchTask | None = None,
    ) -> None:
        """Bring the message to a recorded end. When cancelled, it can be taken up where it was.

        ``begun`` is its run where that is on record already; ``resumed`` says that an
        earlier one may have been left; ``gathering`` is what :meth:`attend` began. Raises
        :class:`ClaimLost` when the message is in other hands, and otherwise what kept the
        end from being recorded: then the message is still to be answered.
        """
        message = left.message
        if begun is None:
            wish = StartRun(
                self.plan(message),
                left.pk,
                left.session_pk,
                resumed,
                left.is_later_result,
                left.claim_number,
            )
            begun = await self.record.begin_run(wish)
        speaker = MessageSender(
            RunJournal(self.record, begun.claim),
            self.outbox,
            message.chat,
            session_pk=left.session_pk,
            temp_group_id=message.temp_group_id,
        )
        speaker.has_spoken, speaker.has_replied = begun.has_spoken, begun.has_replied
        speaker.allowance = SendAllowance(*begun.said)
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
        except (
            Exception
        ) as error:  # the boundary of a run: a bug in it costs one answer, not the chat
            logger.exception("Run %s failed", begun.run_pk)
            await self._fail(left, begun, speaker, f"{type(error).__name__}: {error}", noted)
        else:
            await self._conclude(left, begun, speaker, result, noted)

    async def _ruled(self, left: PendingMessage) -> RunResult | None:
        """The answer to a message that decides over a waiting call; None for every other
        message."""
        message = left.message
        word = None if left.is_later_result else parse_approval_reply(message.text)
        if word is None:
            return None
        is_owner = message.sender_id in self.outbox.owners(message.chat)
        ruling, fault = await self.record.submit(
            apply_approval_decisions,
            ApprovalDecision(word, message.chat.account, message.sender_id, is_owner),
        )
        if ruling is ApprovalOutcome.UNKNOWN and not is_owner:
            return None
        if ruling in (ApprovalOutcome.APPROVED, ApprovalOutcome.REFUSED):
            self.jobs.wake(message.chat.account)
        return RunResult(approval_outcome_text(ruling, word.code, fault), None, 0, 0, 0)

    async def _run(
        self,
        left: PendingMessage,
        begun: ActiveRun,
        speaker: MessageSender,
        noted: list[str],
        gathering: PrefetchTask | None,
    ) -> RunResult:
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

    async def _perceived(
        self, left: PendingMessage, begun: ActiveRun, gathering: PrefetchTask | None
    ) -> MediaText:
        """What is in the message beside words; nothing again for a run whose first request is on
        record."""
        if self.senses is None or left.is_later_result or begun.steps:
            return MediaText()
        return await self.senses.perceive(left, gathering)

    async def _task(
        self,
        left: PendingMessage,
        begun: ActiveRun,
        speaker: MessageSender,
        noted: list[str],
        reading: MediaText,
    ) -> RunRequest:
        """What the loop is to do; what was left out is added to what is ``noted``."""
        message, can_see = left.message, settings.VISION_MODE != "describe"
        owners = self.outbox.owners(message.chat)
        later = DeferredCalls(
            speaker.journal,
            self.jobs,
            speaker,
            session_pk=left.session_pk,
            owners=owners,
            can_see=can_see,
        )
        context = build_tool_context(
            message, speaker, owners, later, ChatState(left.session_pk, begun.state), self.pauses
        )
        context.metadata["memory"] = self.memory and self.memory.notebook
        prompt = await render_chat_prompt(settings.SYSTEM_PROMPT, context, self.engine.registry)
        noted += prompt_notes(prompt)
        background = await self._background(left, begun)
        return RunRequest(
            run_pk=begun.run_pk,
            messages=build_first_request(message, begun, prompt.text, reading, background),
            context=context,
            model_calls=settings.MAX_ITERATIONS,
            can_see=can_see,
            steps=begun.steps,
            later=begun.later,
            watch=self.watch,
            is_gated=self._is_gated(left, begun),
            discoveries=RunDiscoveries(left.session_pk, begun.discovered),
            has_spoken=lambda: speaker.has_spoken,
        )

    async def _background(self, left: PendingMessage, begun: ActiveRun) -> MemoryContext:
        """What the model should have in mind; nothing again for a run whose first request is on
        record."""
        message = left.message
        if self.memory is None or begun.steps:
            return MemoryContext()
        return await self.memory.background(
            left.session_pk,
            message.chat,
            message.sender_id,
            message.text,
            has_notes=begun.has_notes,
        )

    def _is_gated(self, left: PendingMessage, begun: ActiveRun) -> bool:
        """Whether the timing gate comes first: it is on here, and no continuation is active."""
        if left.is_later_result or begun.gate.is_continuing:
            return False
        return (
            self.outbox.attention(left.message.chat).timing_gate
            if begun.gate.is_on is None
            else begun.gate.is_on
        )

    async def _conclude(
        self,
        left: PendingMessage,
        begun: ActiveRun,
        speaker: MessageSender,
        result: RunResult,
        noted: list[str],
    ) -> None:
        text = result.text.strip()
        outcome = None
        if text and not speaker.has_replied:
            if (fitted := speaker.allowance.fitted(text)) != text:
                text, noted = fitted, [*noted, ANSWER_CUT]
            outcome = await speaker.answer(
                build_final_parts(left.message, text), text, result.last_step
            )
        verdict = _verdict(outcome, speaker, result)
        continues = result.ended_by == EndReason.NO_ACTION and result.planned > 0
        if continues != begun.gate.is_continuing:
            await speaker.journal.set_continuing(left.session_pk, continues)
        await speaker.journal.finish(
            RunCompletion(
                run_pk=begun.run_pk,
                run_state=RunState.FINISHED,
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

    async def _notify(self, left: PendingMessage, begun: ActiveRun, speaker: MessageSender) -> None:
        """Tell the chat in one sentence why there is no answer. No model is asked, and nothing
        becomes history."""
        words = notice_text(left.notice, left.message.text)
        outcome = await speaker.answer(build_final_parts(left.message, words), words)
        await speaker.journal.finish(
            RunCompletion(
                run_pk=begun.run_pk,
                run_state=RunState.FINISHED,
                message_pk=left.pk,
                message_state=State.SILENT,
                detail=left.notice if left.notice in NOTICES else "",
                final_text=words,
                outcome=SendResult(outcome.pk, outcome.delivery, is_speech=False),
            )
        )

    async def _fail(
        self,
        left: PendingMessage,
        begun: ActiveRun,
        speaker: MessageSender,
        error: str,
        noted: list[str],
    ) -> None:
        """Tell the chat in one neutral sentence, and the operator in the record."""
        logger.warning("Message %s was not answered: %s", left.pk, error)
        words = build_apology(left.message.text)
        outcome = await speaker.answer(build_final_parts(left.message, words), words)
        await speaker.journal.finish(
            RunCompletion(
                run_pk=begun.run_pk,
                run_state=RunState.FAILED,
                message_pk=left.pk,
                message_state=State.FAILED,
                detail=error,
                error=error,
                notes=noted,
                outcome=SendResult(outcome.pk, outcome.delivery, is_speech=False),
            )
        )

    async def _settle_recorded(
        self, left: PendingMessage, begun: ActiveRun, speaker: MessageSender
    ) -> None:
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
            RunCompletion(
                run_pk=begun.run_pk,
                run_state=RunState.FINISHED,
                message_pk=left.pk,
                message_state=State.SILENT
                if left.notice
                else State.FAILED
                if failed
                else State.ANSWERED,
                detail=answer.error if failed else left.notice if left.notice in NOTICES else "",
                final_text=answer.text,
                outcome=outcome,
                in_history=not failed and not left.is_later_result and not left.notice,
            )
        )


def _nothing_to_tell(begun: ActiveRun) -> RunResult | None:
    return RunResult("", None, 0, 0, 0) if begun.later and begun.later.is_stale else None


def _verdict(
    outcome: SendResult | None, speaker: MessageSender, result: RunResult
) -> AnswerOutcome:
    """How the message answered ends, from what came of the answer."""
    if outcome is not None and outcome.delivery.state == State.FAILED:
        return AnswerOutcome(State.FAILED, outcome.delivery.error, speaker.has_spoken)
    state = State.ANSWERED if outcome is not None or speaker.has_spoken else State.SILENT
    detail = SILENCE.get(result.ended_by, "") if state == State.SILENT else ""
    return AnswerOutcome(state, detail, state == State.ANSWERED)


def approval_outcome_text(ruling: ApprovalOutcome, code: str, fault: str) -> str:
    """What whoever decided is told."""
    match ruling:
        case ApprovalOutcome.APPROVED:
            return f"已批准 {code}，正在执行。"
        case ApprovalOutcome.REFUSED:
            return f"已拒绝 {code}。"
        case ApprovalOutcome.NOT_AN_OWNER:
            return f"只有机器人主人可以处理 {code}。"
        case ApprovalOutcome.NOT_SHOWN:
            return f"{code} 的参数没有全部显示在会话中，不能在这里批准。请在管理后台查看全部参数后处理，或在这里回复「拒绝 {code}」。"
        case ApprovalOutcome.FAULTY:
            return f"{code} 的参数有误，仍在等待：\n{fault}"
        case ApprovalOutcome.UNKNOWN:
            return f"没有等待批准的调用 {code}，它可能已经处理过，或者已经过期。"


def build_first_request(
    message: IncomingMessage,
    begun: ActiveRun,
    prompt: str,
    reading: MediaText,
    background: MemoryContext,
) -> list[ChatMessage]:
    """What the model is sent first: the persona's ``prompt``, fitted history, and the framed words
    or what they stand for."""
    speech = SpokenMessage(
        message.text.strip(),
        message.sender_id,
        message.sender_name,
        message.chat.key,
        message.message_id,
        message.happened_at,
        reading.text,
        reading.pictures,
    )
    request = fit_history(
        system_message(prompt),
        begun.history,
        outcome_message(speech, begun.later.tool_name) if begun.later else user_message(speech),
        max_messages=settings.MAX_CONTEXT_MESSAGES - background.count,
        max_chars=settings.MAX_CONTEXT_CHARS - background.size,
    )
    return background.around(request)


def build_tool_context(
    message: IncomingMessage,
    speaker: MessageSender,
    owners: frozenset[str],
    later: DeferredCalls,
    state: ChatState,
    pauses: ChatPauses,
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
            "flow": RunFlow(),
            "pauses": pauses,
            "chat_state": state,
            "account": chat.account,
            "message_id": message.message_id,
            "owners": owners,
            "sender_role": message.sender_role,
        },
    )
