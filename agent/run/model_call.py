"""One model call of a run, measured and made ready for the record, and read back from there."""

import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent.domain.errors import AgentError, BudgetSpent, ClaimLost, LLMError
from agent.domain.states import StepPhase
from agent.llm.answers.completion import parse_recorded
from agent.llm.requests.base import LLMClient, LLMRequest, LLMResponse, SentRequest, ToolCallRequest
from agent.llm.requests.messages import SPEAKER, ChatMessage, messages_for
from agent.record.runs.runs import RecordedCall, RecordedStep
from agent.record.runs.steps import NewCall, NewStep
from agent.run.services import get_services
from agent.run.task import RunProgress, RunRequest, StepJournal
from tools import metrics
from tools.contract import ToolExecutionResult
from tools.processes import crash_points
from tools.refusals import RefusalReason
from tools.schemas.arguments import parse_strict_json
from tools.text.storable import make_storable
from tools.tracing import add_to_span, fail_span, log_run, open_span

if TYPE_CHECKING:
    from opentelemetry.trace import Span

#: What the conventions call an OpenAI-compatible provider that has no name of its own.
UNNAMED_PROVIDER = "openai"


@contextmanager
def observed_run(task: RunRequest) -> Iterator[None]:
    """Around the loop of a run."""
    persona = get_services(task.context).persona
    about = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": persona.name if persona else None,
        "gen_ai.conversation.id": str(task.discoveries.session_pk),
        "frostagent.run.id": task.run_pk,
    }
    name = f"invoke_agent {persona.name}" if persona else "invoke_agent"
    started, outcome = time.monotonic(), "finished"
    metrics.RUNNING.inc()
    token = log_run.set(task.run_pk)
    try:
        with open_span(name, about):
            yield
    except BaseException as error:
        outcome = _ending(error)
        raise
    finally:
        log_run.reset(token)
        metrics.RUNNING.dec()
        metrics.labelled(metrics.RUNS, outcome).observe(time.monotonic() - started)


def _ending(error: BaseException) -> str:
    match error:
        case BudgetSpent():
            return "budget"
        case ClaimLost():
            return "claim_lost"
        case AgentError():
            return "failed"
        case Exception():
            return "error"
        case _:
            return "cancelled"


async def observed_model_call(model: LLMClient, request: LLMRequest) -> LLMResponse:
    """What ``model`` answers to ``request``. Raises what it raises."""
    name = model.name
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": UNNAMED_PROVIDER,
        "gen_ai.request.model": name,
    }
    started = time.monotonic()
    with open_span(f"chat {name}", about, is_client=True) as span:
        try:
            response = await model.complete(request)
        except LLMError as error:
            _count_model_call(error.sent, model, "failed", started)
            raise
        _count_model_call(response.sent, model, "answered", started)
        _tell_answer(span, response)
    return response


def _count_model_call(
    sent: SentRequest | None, model: LLMClient, outcome: str, started: float
) -> None:
    label, name = (sent.endpoint.label, sent.endpoint.model) if sent else ("", model.name)
    metrics.labelled(metrics.MODEL_CALLS, label, name, outcome).observe(time.monotonic() - started)


def _tell_answer(span: "Span | None", response: LLMResponse) -> None:
    if span is None:
        return
    endpoint = response.sent.endpoint if response.sent else None
    add_to_span(
        span,
        {
            "gen_ai.provider.name": (endpoint and endpoint.preset) or UNNAMED_PROVIDER,
            "gen_ai.response.model": endpoint.model if endpoint else None,
            "server.address": (urlsplit(endpoint.url).hostname or None) if endpoint else None,
            "gen_ai.usage.input_tokens": response.input_tokens,
            "gen_ai.usage.output_tokens": response.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": response.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": response.reasoning_tokens,
            "gen_ai.response.finish_reasons": [response.finish_reason],
            "frostagent.endpoints_in_vain": len(response.attempts),
        },
    )


async def observed_tool_call(
    name: str, call_id: str, work: Awaitable[ToolExecutionResult]
) -> ToolExecutionResult:
    """What ``work``, a call of the tool ``name``, comes to."""
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.type": "function",
    }
    started = time.monotonic()
    with open_span("execute_tool", about) as span:
        result = await work
        refusal = result.metadata.get("refusal")
        outcome = str(refusal or ("succeeded" if result.success else "failed"))
        if not result.success:
            fail_span(span, outcome)
        # Models write any name: of tools that are not there, all are one.
        known = "" if refusal == RefusalReason.UNKNOWN else name
        if known and span is not None and span.is_recording():
            span.update_name(f"execute_tool {known}")
            span.set_attribute("gen_ai.tool.name", known)
    metrics.labelled(metrics.TOOL_CALLS, known, outcome).observe(time.monotonic() - started)
    return result


RequestedCall = tuple[RecordedCall, ToolCallRequest]


async def call_model(
    model: LLMClient,
    task: RunRequest,
    journal: StepJournal,
    progress: RunProgress,
    definitions: list[dict[str, Any]],
    phase: StepPhase = StepPhase.ACTION,
) -> tuple[LLMResponse, NewStep]:
    """The model's next answer, and the step it makes, which is not on record yet.

    Raises :class:`agent.domain.errors.LLMError` when the model cannot be asked; that step is on
    record.
    """
    started = time.monotonic()
    progress.number += 1
    progress.calls += 1
    step = NewStep(
        task.run_pk,
        progress.number,
        progress.unrecorded,
        [d["name"] for d in definitions],
        None,
        phase=phase,
    )
    was_asked = _was_under_way(task, progress.number)
    request = LLMRequest(progress.messages, definitions, progress.begin, was_asked)
    try:
        response = await observed_model_call(model, request)
    except LLMError as error:
        await journal.record_step(_failed(step, error, progress.messages, elapsed_ms(started)))
        raise
    crash_points.hit_crash_point("model_called")
    progress.input_tokens += response.input_tokens
    progress.output_tokens += response.output_tokens
    sent = _recorded_sent(response.sent, progress.messages)
    return response, _answered(step, response, sent, task.context.user_id, elapsed_ms(started))


def _was_under_way(task: RunRequest, number: int) -> bool:
    """Whether an earlier process was killed while it asked the model for the step ``number``: the
    one after those on record, all calls of which have an outcome."""
    if not task.was_cut_off or number != len(task.steps) + 1:
        return False
    last = task.steps[-1] if task.steps else None
    return last is None or (last.response is not None and all(call.result for call in last.calls))


def _failed(
    step: NewStep, error: LLMError, messages: list[ChatMessage], latency_ms: int
) -> NewStep:
    return replace(
        step,
        error=str(error),
        latency_ms=latency_ms,
        attempts=tuple(error.attempts),
        sent=_recorded_sent(error.sent, messages),
    )


def _recorded_sent(sent: SentRequest | None, messages: list[ChatMessage]) -> SentRequest | None:
    """``sent`` with all its messages where they differ from those of the run in more than the name
    of the speaker: another endpoint's thoughts were left out."""
    if sent is None or sent.messages is not None:
        return sent
    speaker = sent.endpoint.speaker
    if all(message.get(SPEAKER, speaker) == speaker for message in messages):
        return sent
    return replace(sent, messages=messages_for(sent.endpoint, messages))


def _answered(
    step: NewStep,
    response: LLMResponse,
    sent: SentRequest | None,
    requested_by: str,
    latency_ms: int,
) -> NewStep:
    return replace(
        step,
        response=response.recorded_message,
        finish_reason=response.finish_reason,
        input_tokens=response.input_tokens,
        output_tokens=response.output_tokens,
        latency_ms=latency_ms,
        calls=tuple(new_call(call, requested_by) for call in response.tool_calls),
        cached_tokens=response.cached_tokens,
        reasoning_tokens=response.reasoning_tokens,
        cost_nano=response.cost_nano,
        attempts=response.attempts,
        rest=_recorded_rest(response),
        sent=sent,
    )


def _recorded_rest(response: LLMResponse) -> dict[str, Any] | None:
    """The rest of the answer, with who said it where that has to be known after a resume."""
    if SPEAKER not in response.message:
        return response.rest
    return {**(response.rest or {}), SPEAKER: response.message[SPEAKER]}


def new_call(call: ToolCallRequest, requested_by: str) -> NewCall:
    """``call`` as the record keeps it."""
    try:
        arguments: Any = (
            make_storable(parse_strict_json(call.arguments)) if call.arguments.strip() else {}
        )
        arguments = (
            {} if arguments is None else arguments
        )  # null is no arguments, here as in tools.schemas.arguments
    except (ValueError, RecursionError):
        arguments = call.arguments
    return NewCall(call.call_id, call.name, arguments, requested_by)


def find_begin(messages: Sequence[ChatMessage]) -> int:
    """Where the current message stands in a run's ``messages``: before the first calls, if there
    are any, and otherwise last."""
    calls = next((at for at, one in enumerate(messages) if "tool_calls" in one), len(messages))
    return max(calls - 1, 0)


def elapsed_ms(started: float) -> int:
    """Milliseconds since ``started``, a reading of ``time.monotonic()``."""
    return round((time.monotonic() - started) * 1000)


def requested_calls(step: RecordedStep) -> list[RequestedCall]:
    """The calls of a recorded step, each with what the model wrote."""
    return (
        list(zip(step.calls, recorded_response(step).tool_calls, strict=False))
        if step.response is not None
        else []
    )


def recorded_response(step: RecordedStep) -> LLMResponse:
    """The recorded answer, under the call ids that were given out for it."""
    response = parse_recorded(
        step.response or {}, [recorded.call_id for recorded in step.calls], speaker=step.speaker
    )
    return replace(response, finish_reason=step.finish_reason)
