"""What metrics, traces and the log are told of runs, model calls and tool calls: how long, how it
ended, what it cost. Never what was said."""

import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from opentelemetry.trace import Span, SpanKind

from agent.domain.errors import AgentError, BudgetSpent, ClaimLost, LLMError
from agent.llm.requests.base import LLMClient, LLMRequest, LLMResponse, SentRequest
from agent.run.services import get_services
from agent.run.task import RunRequest
from tools import metrics
from tools.contract import ToolExecutionResult
from tools.log_run import logging_for
from tools.refusals import RefusalReason
from tools.tracing import add_to_span, fail_span, open_span

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
    with metrics.RUNNING.track_inprogress(), logging_for(task.run_pk), open_span(name, about):
        try:
            yield
        except BaseException as error:
            outcome = _ending(error)
            raise
        finally:
            metrics.RUNS.labels(outcome).observe(time.monotonic() - started)


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
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": UNNAMED_PROVIDER,
        "gen_ai.request.model": model.name,
    }
    started = time.monotonic()
    with open_span(f"chat {model.name}", about, kind=SpanKind.CLIENT) as span:
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
    metrics.MODEL_CALLS.labels(label, name, outcome).observe(time.monotonic() - started)


def _tell_answer(span: Span, response: LLMResponse) -> None:
    if not span.is_recording():
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
        if known and span.is_recording():
            span.update_name(f"execute_tool {known}")
            span.set_attribute("gen_ai.tool.name", known)
    metrics.TOOL_CALLS.labels(known, outcome).observe(time.monotonic() - started)
    return result
