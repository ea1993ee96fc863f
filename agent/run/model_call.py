"""One model call of a run, measured and made ready for the record, and read back from there."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent.domain.errors import LLMError
from agent.domain.states import StepPhase
from agent.llm.answers.completion import parse_recorded
from agent.llm.requests.base import LLMClient, LLMRequest, LLMResponse, SentRequest, ToolCallRequest
from agent.llm.requests.messages import ChatMessage
from agent.llm.requests.speakers import SPEAKER, messages_for
from agent.record.runs.runs import RecordedCall, RecordedStep
from agent.record.runs.steps import NewCall, NewStep
from agent.run.observed import observed_model_call
from agent.run.task import RunProgress, RunRequest, StepJournal
from tools.processes import crash_points
from tools.schemas.arguments import parse_strict_json
from tools.text.storable import make_storable

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
    answered = _answered(step, response, task.context.user_id, elapsed_ms(started))
    return response, replace(answered, sent=_recorded_sent(response.sent, progress.messages))


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


def _answered(step: NewStep, response: LLMResponse, requested_by: str, latency_ms: int) -> NewStep:
    return replace(
        step,
        response=response.recorded_message,
        finish_reason=response.finish_reason,
        input_tokens=response.input_tokens,
        output_tokens=response.output_tokens,
        latency_ms=latency_ms,
        calls=tuple(_new_call(call, requested_by) for call in response.tool_calls),
        cached_tokens=response.cached_tokens,
        reasoning_tokens=response.reasoning_tokens,
        cost_nano=response.cost_nano,
        attempts=response.attempts,
        rest=_recorded_rest(response),
    )


def _recorded_rest(response: LLMResponse) -> dict[str, Any] | None:
    """The rest of the answer, with who said it where that has to be known after a resume."""
    if SPEAKER not in response.message:
        return response.rest
    return {**(response.rest or {}), SPEAKER: response.message[SPEAKER]}


def _new_call(call: ToolCallRequest, requested_by: str) -> NewCall:
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
