"""A test of an endpoint on record: a run of its own, and what was learnt of the endpoint."""

from datetime import datetime

from django.utils import timezone

from agent.llm.probing.probe import TOOL_NAME, ProbedCall, ProbeReport
from agent.models import ModelEndpoint
from agent.record.runs.steps import NewStep
from agent.record.runs.test_runs import record_test_run
from agent.record.settings.endpoints import (
    LearntRefusal,
    RefusedKey,
    StatusChange,
    save_learnt,
    save_refused_key,
    save_status,
    save_window,
)


def record_probe(row: ModelEndpoint, report: ProbeReport, by: str, started_at: datetime) -> int:
    """Put ``report`` of a test that the user ``by`` made on record; the key of its run, 0 where no
    chat model was asked."""
    _keep(row, report)
    asked = [call for call in report.calls if call.messages]
    if report.failed is not None and report.failed.messages:
        asked.append(report.failed)
    steps = [_step(number, call) for number, call in enumerate(asked, start=1)]
    if not steps:
        return 0
    return record_test_run(steps, by=by, started_at=started_at, error=report.words)


def _step(number: int, call: ProbedCall) -> NewStep:
    tools = [TOOL_NAME] if call.has_tool else []
    messages, latency_ms = list(call.messages), round(call.seconds * 1000)
    if call.error is not None:
        error, sent = str(call.error), call.error.sent
        return NewStep(
            0, number, messages, tools, None, error=error, latency_ms=latency_ms, sent=sent
        )
    answer = call.response
    assert answer is not None  # noqa: S101 - what did not fail was answered
    return NewStep(
        0,
        number,
        messages,
        tools,
        answer.recorded_message,
        finish_reason=answer.finish_reason,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        latency_ms=latency_ms,
        sent=answer.sent,
        cached_tokens=answer.cached_tokens,
        reasoning_tokens=answer.reasoning_tokens,
        cost_nano=answer.cost_nano,
        rest=answer.rest,
    )


def _keep(row: ModelEndpoint, report: ProbeReport) -> None:
    """Put on record what was learnt, and how the endpoint fares."""
    for kind, words in report.learnt.items():
        save_learnt(LearntRefusal(row.pk, kind, words))
    if report.window:
        save_window(row.pk, report.window)
    for place, words in report.refused_keys.items():
        save_refused_key(RefusedKey(row.pk, place, words))
    if report.fault:
        save_status(StatusChange(row.pk, error=report.words or report.fault))
    elif report.answers:
        save_status(StatusChange(row.pk, answered_at=timezone.now()))
