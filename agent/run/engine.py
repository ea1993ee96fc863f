"""The run loop: a step is one model call and the tool calls it asked for.

The loop owns no state beyond one run. Everything it does is handed to a :class:`StepJournal` before
the next thing happens, so that a run that is broken off can be resumed without doing anything
twice.
"""

import copy
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from agent.domain.endpoint import ModelRole
from agent.domain.errors import LLMError
from agent.domain.persona import PersonaSettings, ToolChoice
from agent.domain.states import StepPhase, ToolCallState
from agent.llm.answers.completion import calling_message, describe_empty_response, is_empty_response
from agent.llm.requests.base import LLMClient, LLMResponse, ToolCallRequest
from agent.llm.requests.messages import ChatMessage
from agent.llm.spending import spending_for
from agent.record.runs.deferred_calls import INTERRUPTED, DeferredCall
from agent.record.runs.steps import NewStep
from agent.run.call_stops import run_stoppable
from agent.run.gate import TimingGate
from agent.run.model_call import (
    RequestedCall,
    call_model,
    elapsed_ms,
    find_begin,
    new_call,
    observed_run,
    observed_tool_call,
    recorded_response,
    requested_calls,
)
from agent.run.services import RunToolset, add_tool_reminder, get_services
from agent.run.task import (
    AnswerFault,
    PendingCall,
    RunProgress,
    RunRequest,
    RunResult,
    StepJournal,
    WordsBeside,
    build_correction,
    describe_fault,
    find_fault,
    is_sayable,
    mend,
    was_asked_again,
)
from agent.run.tool_results import (
    CONTINUE,
    build_skipped_result,
    call_outcome,
    drop_repeated_messages,
    following_messages,
    get_end_reason,
    needs_approval,
    result_text,
    to_suspension,
)
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation, ToolSpec
from tools.processes import crash_points
from tools.registry.registry import ToolRegistry

OUT_OF_CALLS = "达到最大迭代次数，未能得出最终答案"


async def end_with_answer(
    task: RunRequest,
    journal: StepJournal,
    progress: RunProgress,
    response: LLMResponse,
    step: NewStep | None,
) -> RunResult | None:
    """The end of a run by an answer without tool calls; None where it is faulty, and the model is
    asked once more. ``step`` is None where an earlier process has put it on record.

    Raises :class:`agent.domain.errors.LLMError` where it was before, and there is nothing to say.
    """
    fault = find_fault(response)
    if fault is None or _is_taken(task, progress, fault, response):
        return _ended(progress, response, step)
    if step is not None:
        await journal.record_step(replace(step, error=describe_fault(fault, response)))
        progress.unrecorded = []
    _ask_again(progress, fault, response)
    return None


def end_with_last_words(
    task: RunRequest, progress: RunProgress, response: LLMResponse, step: NewStep
) -> RunResult:
    """The end of a run by its last model call, which offered no tools: of calls in its answer none
    is made."""
    step = replace(step, calls=())
    may_be_silent = task.accepts_nothing or task.has_spoken()
    if mend(response).text.strip() or (may_be_silent and is_empty_response(response)):
        return _ended(progress, response, step)
    error = describe_fault(find_fault(response) or AnswerFault.NOTHING, response)
    return progress.end(OUT_OF_CALLS, replace(step, error=error), out_of_calls=True)


def _is_taken(
    task: RunRequest, progress: RunProgress, fault: AnswerFault, response: LLMResponse
) -> bool:
    """Whether a faulty answer ends the run all the same."""
    was_asked = was_asked_again(fault, progress.faults)
    if fault is AnswerFault.NOTHING:
        return task.has_spoken() or (task.accepts_nothing and was_asked)
    return was_asked and bool(mend(response).text.strip() or task.has_spoken())


def _ask_again(progress: RunProgress, fault: AnswerFault, response: LLMResponse) -> None:
    if was_asked_again(fault, progress.faults):
        if fault is AnswerFault.NOTHING:
            raise LLMError(describe_empty_response(response, " twice"))
        raise LLMError(describe_fault(fault, response))
    progress.faults.append(fault)
    for message in build_correction(fault, response):
        progress.add(message)


def _ended(progress: RunProgress, response: LLMResponse, step: NewStep | None) -> RunResult:
    answer = mend(response)
    return progress.end(answer.text, step, notes=answer.notes)


RUN_ENDED = "本轮已经结束，这次调用没有执行。"


class Engine:
    """Runs tasks with one model and one tool registry, any number at a time. ``timing`` is the
    model of the timing gate, where that is another one."""

    def __init__(
        self, model: LLMClient, registry: ToolRegistry, timing: LLMClient | None = None
    ) -> None:
        self.model = model
        self.registry = registry.narrowed(
            lambda spec: spec.metadata.get("builtin_stage") != "timing"
        )
        self.gate = TimingGate(timing or model, registry)

    async def run(self, task: RunRequest, journal: StepJournal) -> RunResult:
        """Continue until the model answers without a tool call, a tool ends the run, or
        ``task.model_calls`` are used up.

        The last of these calls offers no tools. A faulty answer is asked for once more. Raises
        :class:`agent.domain.errors.LLMError` when the model cannot be asked, or has nothing to say.
        When cancelled, the journal holds every step and call that was completed.
        """
        with observed_run(task):
            return await self._run(task, journal)

    async def _run(self, task: RunRequest, journal: StepJournal) -> RunResult:
        progress = RunProgress(
            list(task.messages), list(task.messages), begin=find_begin(task.messages)
        )
        if end := await self._begun(task, journal, progress):
            return end
        while progress.planned < task.model_calls:
            is_last = progress.planned + 1 == task.model_calls
            definitions: list[dict[str, Any]] = []
            if not is_last:
                chat, found = task.context.availability(), task.discoveries.names
                offered = await self.registry.offering(chat, found)
                definitions = offered.definitions
                if offered.named and progress.is_opening:
                    system = add_tool_reminder(progress.messages[0], offered.named)
                    progress.messages[0] = progress.unrecorded[0] = system
            response, step = await call_model(self.model, task, journal, progress, definitions)
            if is_last:
                return end_with_last_words(task, progress, response, step)
            if not response.tool_calls:
                if end := await end_with_answer(task, journal, progress, response, step):
                    return end
                continue
            progress.faults.append(None)
            pks = await journal.record_step(step)
            progress.unrecorded = []
            progress.add(response.message)
            if task.say is not None:
                await self._say_beside(task.say, task, response, pks[0])
            calls = [
                PendingCall(pk, call) for pk, call in zip(pks, response.tool_calls, strict=True)
            ]
            thoughts = response.reasoning or response.text
            if ended_by := await self.call_tools(task, journal, progress, thoughts, calls):
                return progress.end("", None, ended_by=ended_by)
        return progress.end(OUT_OF_CALLS, None, out_of_calls=True)

    async def _begun(
        self, task: RunRequest, journal: StepJournal, progress: RunProgress
    ) -> RunResult | None:
        """What comes before the model is asked; the end of the run, where that is all there is to
        it."""
        if task.steps:
            return await self._take_up(task, journal, progress)
        if task.later is not None:
            ended_by = await self._conclude(task.later, task, journal, progress)
        else:
            ended_by = await self.gate.decide(task, journal, progress) if task.is_gated else ""
        return progress.end("", None, ended_by=ended_by) if ended_by else None

    async def make_call(
        self, task: RunRequest, journal: StepJournal, call: ToolCallRequest | None
    ) -> int:
        """Make one call that no model asked for, or the earlier one whose outcome ``task`` tells;
        the key of its row, where its outcome is.

        One that an earlier process had begun is not repeated, as in :meth:`run`.
        """
        progress = RunProgress(list(task.messages), list(task.messages))
        with observed_run(task):
            if task.later is not None:
                await self._conclude(task.later, task, journal, progress)
                return task.later.pk
            if task.steps:
                await self._take_up(task, journal, progress)
                return task.steps[-1].calls[0].pk
            if call is None:
                raise ValueError("there is no call to be made")
            step = NewStep(
                *(task.run_pk, 1, progress.messages, [call.name], calling_message([call])),
                calls=(new_call(call, task.context.user_id),),
            )
            (pk,) = await journal.record_step(step)
            await self.call_tools(task, journal, progress, "", [PendingCall(pk, call)])
        return pk

    async def call_tools(
        self,
        task: RunRequest,
        journal: StepJournal,
        progress: RunProgress,
        reasoning: str,
        calls: list[PendingCall],
        *,
        approved: bool = False,
    ) -> str:
        """Execute ``calls`` one after the other, in the order the model wrote them.

        How one of them ends the run, after which no other is made; "" if the run continues.
        """
        following: list[ChatMessage] = []
        ended_by = ""
        specs = {
            spec.name: spec for spec in await self.registry.list_tools(task.context.availability())
        }
        refusal = _refusal(calls, specs)
        for index, (pk, call, begun_at) in enumerate(calls):
            started = time.monotonic()
            if reason := refusal or call.problem:
                result = build_skipped_result(call.name, reason)
            else:
                pending = PendingCall(pk, call, begun_at)
                work = self._invoke(
                    task, pending, specs.get(call.name), reasoning, approved=approved
                )
                result = await run_stoppable(pk, call.name, work)
            if ended_by := ended_by or get_end_reason(result):
                refusal = refusal or RUN_ENDED
            crash_points.hit_crash_point("tool_run")
            text = result_text(call.call_id, result, can_see=task.can_see)
            next_pk = calls[index + 1].pk if index + 1 < len(calls) else None
            if suspension := to_suspension(pk, result, text, next_pk):
                await journal.suspend(suspension)
            else:
                await journal.finish_call(
                    call_outcome(pk, result, text, elapsed_ms(started), next_pk)
                )
            progress.add({"role": "tool", "tool_call_id": call.call_id, "content": text})
            following += following_messages(call.call_id, result, can_see=task.can_see)
            if task.watch is not None:
                task.watch(call, result)
        for message in drop_repeated_messages(following, progress.following_ids):
            progress.add(message)
        return ended_by

    async def _say_beside(
        self, say: WordsBeside, task: RunRequest, response: LLMResponse, first_pk: int
    ) -> None:
        """Say what the model wrote beside its calls, unless one of them ends the run or speaks
        itself."""
        if not is_sayable(response.text):
            return
        for call in response.tool_calls:
            for trait in ("ends_run", "speaks"):
                if await self._has_trait(task, call.name, trait):
                    return
        await say(response.text.strip(), first_pk)

    async def _has_trait(self, task: RunRequest, name: str, trait: str) -> bool:
        return _is(trait, await self.registry.get_tool_spec(name, task.context.availability()))

    async def _invoke(
        self,
        task: RunRequest,
        pending: PendingCall,
        spec: ToolSpec | None,
        reasoning: str,
        *,
        approved: bool,
    ) -> ToolExecutionResult:
        """The result of a call, or that it comes later: after an owner's word, or much work."""
        context, (pk, call, begun_at) = task.context, pending
        services = get_services(context)
        services.flow.count_waits(call.name)
        invocation = ToolInvocation(
            tool_name=call.name,
            arguments=call.arguments,  # type: ignore[arg-type]  # the registry parses and checks the model's text
            call_id=call.call_id,
            session_id=context.session_id,
            stream_id=context.stream_id,
            reasoning=reasoning,
            call_pk=pk,
            begun_at=begun_at,
        )
        later = services.deferred_calls
        if later is None:
            return await self._make(task, invocation, context, approved=approved)
        if spec is not None and spec.is_long_running:
            context = later.with_progress_reports(context, pk)
            result = await later.wait_or_defer(
                invocation, self._make(task, invocation, context, approved=approved)
            )
        else:
            result = await self._make(task, invocation, context, approved=approved)
        return await later.ask_owners(invocation, result) if needs_approval(result) else result

    async def _make(
        self,
        task: RunRequest,
        invocation: ToolInvocation,
        context: ToolExecutionContext,
        *,
        approved: bool,
    ) -> ToolExecutionResult:
        """Make a call with a copy of the chat's state; its state change and discoveries are in the
        result's ``metadata``."""
        services = get_services(context)
        state = services.chat_state
        opened = state.open_copy()
        toolbox = RunToolset(self.registry, task.discoveries.names)
        context = replace(
            context,
            metadata={**context.metadata, "state": opened.given},
            services=replace(services, toolset=toolbox),
        )
        with spending_for(tool=invocation.tool_name):
            work = self.registry.invoke(invocation, context, approved=approved)
            result = await observed_tool_call(invocation.tool_name, invocation.call_id, work)
        approver = {"decided_by": task.later.approved_by} if approved and task.later else {}
        made = approver | {
            "state_change": state.apply_copy(opened, invocation.tool_name),
            "discovery": task.discoveries.add_found_tools(result),
        }
        return await toolbox.with_search_hint(
            replace(result, metadata={**result.metadata, **made}), context
        )

    async def _conclude(
        self, call: DeferredCall, task: RunRequest, journal: StepJournal, progress: RunProgress
    ) -> str:
        """Show the model an earlier run's call with its outcome; one that was approved is made
        now."""
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        request = ToolCallRequest(call.call_id, call.tool_name, arguments, reasoning=call.reasoning)
        progress.add(calling_message([request]))
        if call.is_to_be_made:
            await journal.start_call(call.pk)
            return await self.call_tools(
                task,
                journal,
                progress,
                call.reasoning or "",
                [PendingCall(call.pk, request)],
                approved=True,
            )
        progress.add({"role": "tool", "tool_call_id": call.call_id, "content": call.text})
        for message in drop_repeated_messages(call.following, progress.following_ids):
            progress.add(message)
        return ""

    async def _take_up(
        self, task: RunRequest, journal: StepJournal, progress: RunProgress
    ) -> RunResult | None:
        """Bring ``progress`` to where the record ends; the end of the run, if it had come to that.

        Calls that had begun are not repeated, for their effect may be in the world, but
        for those of tools that say they may be.
        """
        steps = [step for step in task.steps if step.phase == StepPhase.ACTION]
        progress.number, progress.gate_steps = len(task.steps), len(task.steps) - len(steps)
        if not steps:
            return await self._take_up_gate(task, journal, progress)
        progress.messages = [message for step in steps for message in step.request]
        progress.unrecorded = []
        progress.begin = find_begin(progress.messages)
        answers = [recorded_response(step) for step in steps if step.response is not None]
        if steps[-1].response is None:  # the model call failed: repeat it
            progress.faults = [find_fault(answer) for answer in answers]
            return None
        response = answers.pop()
        progress.faults = [find_fault(answer) for answer in answers]
        if not response.tool_calls:
            return await end_with_answer(task, journal, progress, response, None)
        asked = requested_calls(steps[-1])
        if ended_by := await self._ended_by(task, asked):
            return progress.end("", None, ended_by=ended_by)
        progress.add(response.message)
        waiting = [PendingCall(*one) async for one in self._to_be_made(task, asked, progress)]
        if waiting:
            await journal.start_call(waiting[0].pk)
            thoughts = response.reasoning or response.text
            ended_by = await self.call_tools(task, journal, progress, thoughts, waiting)
        return progress.end("", None, ended_by=ended_by) if ended_by else None

    async def _take_up_gate(
        self, task: RunRequest, journal: StepJournal, progress: RunProgress
    ) -> RunResult | None:
        """Resume at the timing gate, or after it if it had opened: no other model call was made
        yet.

        The gate's first request holds the messages that the run began with, media included.
        """
        progress.messages = [task.messages[0], *task.steps[0].request[1:]]
        progress.unrecorded = list(progress.messages)
        progress.begin = find_begin(progress.messages)
        asked = requested_calls(task.steps[-1])
        has_opened = any(
            one.state == ToolCallState.SUCCEEDED and call.name == CONTINUE for one, call in asked
        )
        if not (ended_by := await self._ended_by(task, asked)) and not has_opened:
            left = [
                PendingCall(one.pk, call, one.begun_at) for one, call in asked if not one.result
            ]
            ended_by = await self.gate.decide(task, journal, progress, left)
        return progress.end("", None, ended_by=ended_by) if ended_by else None

    async def _to_be_made(
        self, task: RunRequest, asked: list[RequestedCall], progress: RunProgress
    ) -> AsyncIterator[tuple[Any, ...]]:
        """Of the recorded calls those that are still to be made; the others are added to
        ``progress``."""
        for recorded, call in asked:
            if recorded.state == ToolCallState.WAITING:
                yield recorded.pk, call
            elif not recorded.result and (
                call.problem or await self._has_trait(task, call.name, "repeatable")
            ):
                yield recorded.pk, call, recorded.begun_at
            else:
                text = recorded.result or INTERRUPTED
                progress.add({"role": "tool", "tool_call_id": recorded.call_id, "content": text})

    async def _ended_by(self, task: RunRequest, asked: list[RequestedCall]) -> str:
        """The tool among recorded calls that has ended the run, "" for none."""
        for recorded, call in asked:
            if recorded.state == ToolCallState.SUCCEEDED and await self._has_trait(
                task, call.name, "ends_run"
            ):
                return call.name
        return ""


def _is(trait: str, spec: ToolSpec | None) -> bool:
    return spec is not None and trait in spec.metadata.get("traits", ())


def _refusal(calls: list[PendingCall], specs: Mapping[str, ToolSpec]) -> str:
    """Why none of ``calls`` is made: one among them has to be the only one; "" where there is
    none."""
    alone = next((one.call.name for one in calls if _is("exclusive", specs.get(one.call.name))), "")
    return f"{alone} 必须单独调用；这次回答中的工具都没有执行。" if alone and len(calls) > 1 else ""


#: Sets of endpoints and tools that an engine is kept for.
MOST_KEPT = 200


class ModelSource(Protocol):
    """Who is asked for a role, by the keys of the endpoints that a persona names for it."""

    def model(self, role: ModelRole, choice: Sequence[int] = ()) -> LLMClient: ...

    def name_model(self, role: ModelRole, choice: Sequence[int] = ()) -> str:
        """The name of the model that is asked first. May be called in any thread."""
        ...


class PersonaEngines:
    """``default`` as each persona has it. Without a ``source`` all personas have its models. Used
    from one event loop, but for :meth:`name_model`."""

    def __init__(self, default: Engine, source: ModelSource | None = None) -> None:
        self.default = default
        self._source = source
        self._kept: dict[object, Engine] = {}

    def find(self, persona: PersonaSettings) -> Engine:
        """The engine with the endpoints and the tools of ``persona``: what it does not offer is
        not found when it is called. The timing gate keeps its own tools."""
        chat = persona.endpoints.get(ModelRole.CHAT, ())
        timing = persona.endpoints.get(ModelRole.TIMING, ())
        if persona.tool_choice == ToolChoice.ALL and not (chat or timing):
            return self.default
        key = persona.tool_choice, persona.tools, chat, timing
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            made = self._kept[key] = copy.copy(self.default)
            made.registry = made.registry.narrowed(lambda spec: persona.offers(spec.name))
            if self._source is not None:
                made.model = self._source.model(ModelRole.CHAT, chat)
                made.gate = made.gate.asking(self._source.model(ModelRole.TIMING, timing))
        return self._kept[key]

    def name_model(self, persona: PersonaSettings) -> str:
        """The model that ``persona`` is answered by first. May be called in any thread."""
        choice = persona.endpoints.get(ModelRole.CHAT, ())
        if self._source is None or not choice:
            return self.default.model.name
        return self._source.name_model(ModelRole.CHAT, choice)
