"""One message, from the inbox to the recorded outcome, in one screen."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from agent.chat.endings import RunEndings
from agent.chat.history import hear_earlier, hear_group, open_conversation
from agent.chat.message_run import (
    CommandAnswers,
    MessageRun,
    QueuedMessage,
    StopAnswer,
    build_spenders,
    build_tool_context,
    stop_nothing,
)
from agent.chat.rule_answers import LACKING, build_call, name_people, say_by_rule, tell_call
from agent.chat.speaking import Speaker, approval_outcome_text
from agent.domain.chat_state import ChatState
from agent.domain.client_actions import ClientActions
from agent.domain.errors import AgentError, BudgetSpent, ClaimLost, RunTimeout, choose_language
from agent.domain.event_rules import EventAction
from agent.domain.failures import failure_kind
from agent.domain.requests import RequestReply
from agent.domain.states import RunOrigin
from agent.domain.types import ChatAddress, IncomingMessage, MediaSource, Outbox
from agent.llm.requests.base import ToolCallRequest
from agent.llm.spending import scope, spending_for
from agent.media.pipeline import MediaPipeline, MediaText, PrefetchTask
from agent.memory.relevance import MemoryContext
from agent.memory.service import MemoryService
from agent.record.record import Record
from agent.record.run_journal import RunJournal
from agent.record.runs.deferred_calls import load_call_outcome
from agent.record.runs.runs import ActiveRun, RunPlan, StartRun
from agent.record.waiting.approvals import (
    ApprovalOutcome,
    apply_approval_decision,
)
from agent.record.waiting.recovery import PendingMessage
from agent.run.deferred_calls import DeferredCalls
from agent.run.engine import PersonaEngines
from agent.run.jobs import BackgroundCalls
from agent.run.message_sender import ChatFloors, MessageSender, SendAllowance
from agent.run.services import RunDiscoveries, RunServices
from agent.run.task import RunRequest, RunResult
from agent.run.tool_results import ChatPauses
from tools.contract import ToolExecutionResult
from tools.error_boundary import LogLimit
from tools.registry.execution import time_limit
from tools.registry.policy import GROUP_ADMIN_ROLES


def working_sign(outbox: Outbox, pending: PendingMessage) -> AbstractContextManager[None]:
    """Show it inside, where the chat's manners say so."""
    manners = pending.manners
    is_shown = manners.typing if pending.message.chat.kind == "private" else manners.reaction
    return _shown_sign(outbox, pending) if is_shown else nullcontext()


@contextmanager
def _shown_sign(outbox: Outbox, pending: PendingMessage) -> Iterator[None]:
    chat, manners, message_id = pending.message.chat, pending.manners, pending.message.message_id
    outbox.show_working(chat, message_id, manners, is_on=True)
    try:
        yield
    finally:
        outbox.show_working(chat, message_id, manners, is_on=False)


logger = logging.getLogger(__name__)
LogLimit(logger)


ToolCallWatcher = Callable[[ToolCallRequest, ToolExecutionResult], None]


@dataclass(slots=True)
class ConversationHandler:
    """Answers messages; holds nothing that belongs to one of them."""

    record: Record
    engines: PersonaEngines
    outbox: Outbox
    jobs: BackgroundCalls
    origin: RunOrigin = RunOrigin.CHAT
    watch: ToolCallWatcher | None = field(default=None)
    media: MediaPipeline | None = field(default=None)
    pauses: ChatPauses = field(default_factory=ChatPauses)
    floors: ChatFloors = field(default_factory=ChatFloors)
    memory: MemoryService | None = field(default=None)
    commands: CommandAnswers | None = field(default=None)
    """None: a command is answered like any other message."""
    stop_answer: StopAnswer = field(default=stop_nothing)
    actions: ClientActions | None = field(default=None)
    """None: there is no client that could act."""
    acts_are_on: bool = False
    """Whether the row of one of the tools that act is switched on."""
    reminded: Callable[[], None] = field(default=lambda: None)
    """Called when the message of a reminder has come to its end."""
    names: MediaSource | None = field(default=None)
    """Who is asked what people are called."""
    decide_requests: Callable[[RequestReply, str, str], Awaitable[str]] | None = None
    """Carries out what an owner (the second) says of requests; what is said of that, in a language
    (the third)."""
    speaker: Speaker = field(init=False)
    endings: RunEndings = field(init=False)

    def __post_init__(self) -> None:
        self.speaker = Speaker(self.record)
        tells_owners = self.origin is not RunOrigin.TERMINAL
        self.endings = RunEndings(self.record, self.speaker, self.memory, tells_owners)

    def build_run_plan(self, message: IncomingMessage) -> RunPlan:
        """The run that would answer ``message``."""
        return RunPlan(
            self.origin,
            self.engines.default.model.name,
            message.chat,
            message.sender_id,
            self.engines.name_model,
        )

    def prefetch_media(self, pending: PendingMessage) -> PrefetchTask | None:
        """Begin to fetch what a new message holds; None where that is nothing."""
        message = pending.message
        is_read = not (pending.notice or pending.command)
        if self.media is None or not is_read or (message.is_plain and not message.mentions):
            return None
        return self.media.prefetch(pending)

    async def answer_message(
        self,
        pending: PendingMessage,
        active: ActiveRun | None = None,
        *,
        resumed: bool = False,
        prefetch: PrefetchTask | None = None,
        earlier: tuple[QueuedMessage, ...] = (),
    ) -> None:
        """Bring the message to a recorded end. When cancelled, it can be taken up where it was.

        ``active`` is its run where that is on record already; ``resumed`` says that an
        earlier one may have been left; ``prefetch`` is what :meth:`prefetch_media` began;
        ``earlier`` are merged into it on record, and end with it. Raises
        :class:`ClaimLost` when the message is in other hands, and otherwise what kept the
        end from being recorded: then the message is still to be answered.
        """
        if active is None:
            start_run = StartRun(
                self.build_run_plan(pending.message),
                pending.pk,
                pending.session_pk,
                resumed,
                pending.is_later_result,
                pending.claim_number,
            )
            active = await self.record.begin_run(start_run)
            pending = replace(
                pending, account=active.account, persona=active.persona, manners=active.manners
            )
        run = MessageRun(pending, active, self._sender(pending, active, earlier), earlier)
        reminder = pending.reminder
        if run.is_taken_over:
            await self.endings.leave_to_operator(run)
        elif reminder is not None and (run.is_silenced or not reminder.is_task):
            await self.endings.remind(run, reminder)
        elif active.answer is not None:
            await self.endings.finish_recorded(run, active.answer)
        elif pending.notice:
            await self.endings.send_notice(run)
        else:
            spenders = build_spenders(pending, active.persona.name)
            by_rule = (pending.rule is not None or active.later is not None) and run.is_by_rule
            sign = nullcontext() if by_rule else working_sign(self.outbox, pending)
            with spending_for(**spenders), sign:
                await self._answer(run, prefetch, resumed=resumed, by_rule=by_rule)
        if reminder is not None:
            self.reminded()

    async def _answer(
        self, run: MessageRun, prefetch: PrefetchTask | None, *, resumed: bool, by_rule: bool
    ) -> None:
        """Bring a message to its end by a run."""
        active, command = run.active, run.pending.command
        try:
            if command is not None and self.commands is not None:
                await self.commands.answer(run, command, self.stop_answer)
                return
            if _is_needless(run):
                result = RunResult("", None, 0, 0, 0)
            elif by_rule:
                await self._follow_rule(run)
                return
            else:
                result = await self._decide_approval(run) or await self._run_engine(
                    run, prefetch, resumed=resumed
                )
        except ClaimLost:
            raise
        except BudgetSpent as spent:
            await self.endings.stop(run, spent)
        except AgentError as error:
            await self.endings.fail(run, str(error), failure_kind(error))
        except (
            Exception
        ) as error:  # the boundary of a run: a bug in it costs one answer, not the chat
            logger.exception("Run %s failed", active.run_pk)
            await self.endings.fail(run, f"{type(error).__name__}: {error}", failure_kind(error))
        else:
            await self.endings.finish(run, result)

    async def _follow_rule(self, run: MessageRun) -> None:
        """Bring a message to its end by a rule, without a model."""
        rule = run.pending.rule
        if rule is not None and rule.lacks:
            await self.endings.tell(run, "", detail=LACKING)
            return
        if rule is not None and rule.action != EventAction.TOOL:
            await say_by_rule(run, rule, self.endings, self.names)
            return
        message, active = run.message, run.active
        if run.is_silenced and active.later is None:
            await self.endings.tell(run, "", detail=run.silence)
            return
        request = await self._build_request(run, MediaText(), MemoryContext())
        request.messages = [{"role": "user", "content": message.text}]
        call = build_call(rule, active.run_pk) if rule else None
        engine = self.engines.find(active.persona)
        call_pk = await engine.make_call(request, run.sender.journal, call)
        news = await self.record.submit(load_call_outcome, call_pk)
        language = choose_language(message.text, active.persona.language)
        text = tell_call(news, has_spoken=run.has_answered, language=language)
        said = "" if run.is_silenced else text
        await self.endings.tell(run, said, detail=rule.name if rule else "")

    def _sender(
        self, pending: PendingMessage, active: ActiveRun, earlier: Sequence[QueuedMessage]
    ) -> MessageSender:
        is_demo = self.engines.find(active.persona).model.is_demo
        sender = MessageSender(
            RunJournal(self.record, active.claim, not is_demo, tuple(one.pk for one in earlier)),
            self.outbox,
            pending.message.chat,
            session_pk=pending.session_pk,
            temp_group_id=pending.message.temp_group_id,
            sends_per_minute=active.manners.sends_per_minute,
            part_chars=active.manners.part_chars,
            floors=self.floors,
        )
        sender.has_spoken, sender.has_replied = active.has_spoken, active.has_replied
        sender.allowance, sender.said = SendAllowance(*active.said), list(active.spoken)
        return sender

    async def _decide_approval(self, run: MessageRun) -> RunResult | None:
        """The answer to a message that decides over a waiting call; None for every other
        message."""
        reply, message = run.pending.approval_reply, run.message
        if reply is None:
            return None
        account = message.chat.account
        is_owner = message.sender_id in run.pending.account.owners
        language = choose_language(message.text, run.active.persona.language)
        if isinstance(reply, RequestReply):
            if not is_owner or self.decide_requests is None:
                return None
            text = await self.decide_requests(reply, message.sender_id, language)
            return RunResult(text, None, 0, 0, 0)
        leads = None if is_owner or not await self._leads_group(run) else run.pending.session_pk
        outcome, problem = await self.record.submit(
            apply_approval_decision, reply, account, message.sender_id, is_owner, leads
        )
        if outcome is ApprovalOutcome.UNKNOWN and not is_owner:
            return None
        if outcome in (ApprovalOutcome.APPROVED, ApprovalOutcome.REFUSED):
            self.jobs.wake(account)
        text = approval_outcome_text(outcome, reply.code, problem, language)
        return RunResult(text, None, 0, 0, 0)

    async def _leads_group(self, run: MessageRun) -> bool:
        """Whether the sender is the owner or an administrator of the group, as he speaks: where
        his message does not say, the client is asked."""
        chat, role = run.message.chat, run.message.sender_role
        if chat.kind != "group" or not run.pending.account.believes_senders:
            return False
        if not role and self.actions is not None:
            member = await self.actions.find_member(chat, run.message.sender_id)
            role = member.role if member else ""
        return role in GROUP_ADMIN_ROLES

    async def _run_engine(
        self, run: MessageRun, prefetch: PrefetchTask | None, *, resumed: bool
    ) -> RunResult:
        """The result of the loop; what was left out is added to the run's notes."""
        message = run.message
        has_begun = bool(run.active.steps)  # its first request is on record
        seconds = run.active.persona.run_seconds
        try:
            async with time_limit(seconds) as limit:
                media, memory = MediaText(), MemoryContext()
                if self.media and not has_begun and not run.pending.is_later_result:
                    if resumed:
                        media = await self.media.describe_resumed(run.pending)
                    else:
                        media = await self.media.describe(run.pending, prefetch)
                    run.notes += media.notes
                if run.pending.rule and not has_begun and (rule := run.ordering_rule):
                    names = await name_people(message, rule, self.names)
                    context = f"{media.context}\n{rule.fence(names)}".strip()
                    media = replace(media, context=context, order=rule.asked)
                if run.earlier and not has_begun:
                    merged = await hear_earlier(run, self.media)
                    run.pending = replace(run.pending, merged=merged)
                if self.memory and not has_begun:
                    memory = await self.memory.build_context(
                        run.pending.session_pk,
                        message.chat,
                        message.sender_id,
                        "\n".join([*(one.text for one in run.pending.merged), message.text]),
                        has_notes=run.active.has_notes,
                        is_reset=run.active.context_after is not None,
                    )
                if not has_begun:
                    run.ambient = await hear_group(self.record, run.pending, run.active)
                request = await self._build_request(run, media, memory)
                engine = self.engines.find(run.active.persona)
                return await engine.run(request, run.sender.journal)
        except TimeoutError as error:
            if limit.expired():
                raise RunTimeout(f"the run took longer than {seconds:g} s") from error
            raise

    async def _build_request(
        self, run: MessageRun, media: MediaText, memory: MemoryContext
    ) -> RunRequest:
        """What the loop is to do; what was left out is added to the run's notes."""
        message, pending, active, sender = run.message, run.pending, run.active, run.sender
        persona, account = active.persona, pending.account
        can_see = persona.vision_mode != "describe"
        later = DeferredCalls(
            sender.journal,
            self.jobs,
            sender,
            session_pk=pending.session_pk,
            owners=account.owners,
            can_see=can_see,
            language=choose_language(message.text, persona.language),
        )
        services = RunServices(
            sender=sender,
            pauses=self.pauses,
            chat_state=ChatState(pending.session_pk, active.state),
            deferred_calls=later,
            notes=self.memory.notebook if self.memory else None,
            persona=persona,
            spend_scope=scope.get(),
            actions=self.actions,
        )
        own_role = await self._find_own_role(message.chat) if self.acts_are_on else ""
        context = build_tool_context(message, account, services, own_role)
        registry = self.engines.find(persona).registry
        messages, notes = await open_conversation(
            message,
            active,
            context,
            registry,
            media=media,
            memory=memory,
            ambient=run.ambient,
            merged=pending.merged,
        )
        run.notes += notes
        is_gated = (
            pending.account.media.timing_gate if active.gate.is_on is None else active.gate.is_on
        )
        return RunRequest(
            run_pk=active.run_pk,
            messages=messages,
            context=context,
            model_calls=persona.model_calls,
            can_see=can_see,
            steps=active.steps,
            later=active.later,
            was_cut_off=pending.was_cut_off,
            watch=self.watch,
            is_gated=is_gated and not (pending.is_later_result or active.gate.is_continuing),
            discoveries=RunDiscoveries(pending.session_pk, active.discovered),
            has_spoken=lambda: run.has_answered,
            say=partial(self.speaker.say_beside, run)
            if run.active.manners.says_beside_calls
            else None,
        )

    async def _find_own_role(self, chat: ChatAddress) -> str:
        """The account's own role in a group; "" where the client does not say."""
        if self.actions is None or chat.kind != "group":
            return ""
        own = await self.actions.find_member(chat, chat.account)
        return own.role if own else ""


def _is_needless(run: MessageRun) -> bool:
    """Whether the outcome of an earlier call need not be told any more, nor the call be made."""
    later = run.active.later
    if later is None:
        return False
    return later.is_stale or (run.is_silenced and not later.is_to_be_made)
