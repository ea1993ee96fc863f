"""The run loop: a step is one model call and the tool calls it asked for.

The loop owns no state beyond one run. Everything it does is handed to a
:class:`Journal` before the next thing happens, so that a run that is broken off can
be taken up again without doing anything twice.
"""

import copy
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agent import faults
from agent.errors import LLMError
from agent.later import LaterCalls
from agent.llm.base import LLMClient, LLMRequest, LLMResponse, ToolCallRequest
from agent.llm.completion import parse_completion
from agent.models import ToolCall
from agent.prompt import ChatMessage
from agent.store.later import INTERRUPTED, LaterCall, Suspension
from agent.store.runs import RecordedStep
from agent.store.steps import CallOutcome, NewCall, NewStep
from agent.tool_results import call_message, call_outcome, following_messages, needs_approval, once, result_text, suspended
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.registry import ToolRegistry
from tools.text import storable

OUT_OF_CALLS = "达到最大迭代次数，未能得出最终答案"


class Journal(Protocol):
    """Where a run is put on record while it goes on."""

    async def record_step(self, step: NewStep) -> list[int]:
        """Commit a step; returns the keys of its tool calls, the first of which counts as begun."""
        ...

    async def start_call(self, pk: int) -> None:
        """Commit that a waiting call begins: from now on its effect may be in the world."""
        ...

    async def finish_call(self, outcome: CallOutcome) -> None:
        """Commit how a call ended, and that ``outcome.next_pk`` begins."""
        ...

    async def suspend(self, suspension: Suspension) -> None:
        """Commit that the run goes on without a call's outcome, and that the next call begins."""
        ...


@dataclass(slots=True)
class Task:
    """One run to be done: what to send, what to offer, on whose behalf, within what."""

    run_pk: int
    messages: list[ChatMessage]
    context: ToolExecutionContext
    model_calls: int
    can_see: bool = False
    """Whether the model takes pictures."""
    steps: list[RecordedStep] = field(default_factory=list)
    """What an earlier process recorded of this run; its requests replace ``messages``."""
    later: LaterCall | None = None
    """An earlier run's call: the model is shown it with its outcome, after ``messages``."""
    watch: Callable[[ToolCallRequest, ToolExecutionResult], None] | None = None


@dataclass(slots=True)
class Result:
    """What the loop came to. ``last_step`` is not on record yet: it is committed with the answer."""

    text: str
    last_step: NewStep | None
    calls: int
    input_tokens: int
    output_tokens: int
    out_of_calls: bool = False


@dataclass(slots=True)
class _Progress:
    """The run so far. ``unrecorded`` are the messages that the next step's record will hold."""

    messages: list[ChatMessage]
    unrecorded: list[ChatMessage]
    number: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    following_ids: set[str] = field(default_factory=set)

    def add(self, message: ChatMessage) -> None:
        self.messages.append(message)
        self.unrecorded.append(message)

    def end(self, text: str, step: NewStep | None, *, out_of_calls: bool = False) -> Result:
        return Result(text, step, self.calls, self.input_tokens, self.output_tokens, out_of_calls)


class Engine:
    """Runs tasks with one model and one tool registry, any number at a time."""

    def __init__(self, model: LLMClient, registry: ToolRegistry) -> None:
        self.model = model
        self.registry = registry

    async def run(self, task: Task, journal: Journal) -> Result:
        """Go on until the model answers without a tool call, or ``task.model_calls`` are used up.

        Raises :class:`agent.errors.LLMError` when the model cannot be asked. When
        cancelled, the journal holds every step and call that was completed.
        """
        progress = _Progress(list(task.messages), list(task.messages))
        if task.steps:
            if (text := await self._take_up(task, journal, progress)) is not None:
                return progress.end(text, None)
        elif task.later is not None:
            await self._conclude(task.later, task, journal, progress)
        while progress.number < task.model_calls:
            definitions = await self.registry.get_llm_definitions(task.context.availability())
            response, step = await self._ask(task, journal, progress, definitions)
            if not response.tool_calls:
                return progress.end(response.text, step)
            pks = await journal.record_step(step)
            progress.unrecorded = []
            progress.add(response.message)
            await self._call_tools(task, journal, progress, response.text, list(zip(pks, response.tool_calls, strict=True)))
        return progress.end(OUT_OF_CALLS, None, out_of_calls=True)

    async def _ask(
        self, task: Task, journal: Journal, progress: _Progress, definitions: list[dict[str, Any]]
    ) -> tuple[LLMResponse, NewStep]:
        started = time.monotonic()
        progress.number += 1
        progress.calls += 1
        step = NewStep(task.run_pk, progress.number, progress.unrecorded, [d["name"] for d in definitions], None)
        try:
            response = await self.model.complete(LLMRequest(progress.messages, definitions))
        except LLMError as error:
            await journal.record_step(replace(step, error=str(error), latency_ms=_elapsed_ms(started)))
            raise
        faults.reached("model_called")
        progress.input_tokens += response.input_tokens
        progress.output_tokens += response.output_tokens
        return response, replace(
            step,
            response=response.recorded,
            finish_reason=response.finish_reason,
            input_tokens=response.input_tokens,
            output_tokens=response.output_tokens,
            latency_ms=_elapsed_ms(started),
            calls=tuple(_new_call(call, task.context.user_id) for call in response.tool_calls),
        )

    async def _call_tools(
        self,
        task: Task,
        journal: Journal,
        progress: _Progress,
        reasoning: str,
        calls: list[tuple[int, ToolCallRequest]],
        *,
        approved: bool = False,
    ) -> None:
        """Execute ``calls`` one after the other, in the order the model wrote them."""
        following: list[ChatMessage] = []
        for place, (pk, call) in enumerate(calls):
            started = time.monotonic()
            result = await self._invoke(task, call, pk, reasoning, approved=approved)
            faults.reached("tool_run")
            text = result_text(call.call_id, result, can_see=task.can_see)
            next_pk = calls[place + 1][0] if place + 1 < len(calls) else None
            if suspension := suspended(pk, result, text, next_pk):
                await journal.suspend(suspension)
            else:
                await journal.finish_call(call_outcome(pk, result, text, _elapsed_ms(started), next_pk))
            progress.add({"role": "tool", "tool_call_id": call.call_id, "content": text})
            following += following_messages(call.call_id, result, can_see=task.can_see)
            if task.watch is not None:
                task.watch(call, result)
        for message in once(following, progress.following_ids):
            progress.add(message)

    async def _invoke(self, task: Task, call: ToolCallRequest, pk: int, reasoning: str, *, approved: bool) -> ToolExecutionResult:
        """The result of a call, or that it comes later: after an owner's word, or much work."""
        context = task.context
        invocation = ToolInvocation(
            tool_name=call.name,
            arguments=call.arguments,  # type: ignore[arg-type]  # the registry parses and checks the model's text
            call_id=call.call_id,
            session_id=context.session_id,
            stream_id=context.stream_id,
            reasoning=reasoning,
            metadata={"tool_call_pk": pk},
        )
        later: LaterCalls | None = context.metadata.get("later")
        if later is None:
            return await self.registry.invoke(invocation, context, approved=approved)
        spec = await self.registry.get_tool_spec(call.name, context.availability())
        if spec is not None and spec.is_long_running:
            context = later.reporting(context, pk)
            result = await later.carry(invocation, self.registry.invoke(invocation, context, approved=approved))
        else:
            result = await self.registry.invoke(invocation, context, approved=approved)
        return await later.ask(invocation, result) if needs_approval(result) else result

    async def _conclude(self, call: LaterCall, task: Task, journal: Journal, progress: _Progress) -> None:
        """Show the model an earlier run's call with its outcome; one that was approved is made now."""
        request = ToolCallRequest(call.call_id, call.tool_name, json.dumps(call.arguments, ensure_ascii=False))
        progress.add(call_message(request))
        if call.is_to_be_made:
            await journal.start_call(call.pk)
            await self._call_tools(task, journal, progress, "", [(call.pk, request)], approved=True)
            return
        progress.add({"role": "tool", "tool_call_id": call.call_id, "content": call.text})
        for message in once(call.following, progress.following_ids):
            progress.add(message)

    async def _take_up(self, task: Task, journal: Journal, progress: _Progress) -> str | None:
        """Bring ``progress`` to where the record ends; the final text if the model had given it.

        Calls that had begun are not repeated: their effect may be in the world.
        """
        steps = task.steps
        progress.messages = [message for step in steps for message in step.request]
        progress.unrecorded = []
        progress.number = len(steps)
        if steps[-1].response is None:  # the model could not be asked: ask again
            return None
        response = _recorded_response(steps[-1])
        if not response.tool_calls:
            return response.text
        progress.add(response.message)
        waiting = []
        for recorded, call in zip(steps[-1].calls, response.tool_calls, strict=False):
            if recorded.state == ToolCall.State.WAITING:
                waiting.append((recorded.pk, call))
                continue
            text = recorded.result or INTERRUPTED
            progress.add({"role": "tool", "tool_call_id": recorded.call_id, "content": text})
        if waiting:
            await journal.start_call(waiting[0][0])
            await self._call_tools(task, journal, progress, response.text, waiting)
        return None


def _recorded_response(step: RecordedStep) -> LLMResponse:
    """The recorded answer, under the call ids that were given out for it."""
    message = copy.deepcopy(step.response or {})
    for call, recorded in zip(message.get("tool_calls") or [], step.calls, strict=False):
        call["id"] = recorded.call_id
    return parse_completion({"choices": [{"message": message}]})


def _new_call(call: ToolCallRequest, requested_by: str) -> NewCall:
    try:
        arguments: Any = storable(json.loads(call.arguments)) if call.arguments else {}
    except (ValueError, RecursionError):
        arguments = call.arguments
    return NewCall(call.call_id, call.name, arguments, requested_by)


def _elapsed_ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
