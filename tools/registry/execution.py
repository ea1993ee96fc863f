"""One call on its way: its hooks, the tool itself or its mock, and the check of what came back."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from tools.contract import (
    JsonSchema,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolProvider,
    ToolSpec,
)
from tools.error_boundary import capture_error, contain
from tools.errors import InvalidArguments, ToolFailed
from tools.log_limit import LogLimit
from tools.processes.threads import run_in_thread
from tools.registry import outcomes
from tools.registry.hooks import AfterHook, BeforeHook, Hooks
from tools.registry.result_validation import validate_result
from tools.registry.settings import ToolSettings
from tools.registry.time_limits import time_limit
from tools.schemas.arguments import UNUSABLE_SCHEMA, schema_messages
from tools.schemas.coercion import check_size
from tools.text.placeholders import render_mock

logger = logging.getLogger(__name__)


# Watches a coroutine for steps that block the event loop and thereby all other work.

T = TypeVar("T")

HELD_SECONDS = 0.5
"""How long one step may take, between two points where the coroutine waits for something."""


class BlockingWatch:
    """``work`` as it is, but that each step over ``HELD_SECONDS`` is reported with its seconds. It
    is not stopped: nothing can."""

    def __init__(self, work: Coroutine[Any, Any, T], report: Callable[[float], None]) -> None:
        self._work = work
        self._report = report

    def __await__(self) -> Generator[Any, Any, Any]:
        return _Steps(self._work, self._report)


class _Steps(Generator[Any, Any, Any]):
    def __init__(self, work: Coroutine[Any, Any, Any], report: Callable[[float], None]) -> None:
        self._work = work
        self._report = report

    def send(self, value: Any) -> Any:
        return self._timed(self._work.send, value)

    def throw(self, *error: Any) -> Any:
        return self._timed(self._work.throw, *error)

    def _timed(self, step: Callable[..., Any], *arguments: Any) -> Any:
        began = monotonic()
        try:
            return step(*arguments)
        finally:
            took = monotonic() - began
            if took > HELD_SECONDS:
                self._report(took)


LogLimit(logger, named=1)

RESERVED_METADATA = {
    *("refusal", "mock", "full_content", "pending", "worker", "state_change"),
    *("verdict", "decided_by", "stood_in"),
}
"""Metadata of results that only this system may set, not a provider.

``pause_execution`` is not among them: by MaiBot's contract any tool may end the run.
"""


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """What hooks and the tool get of a call, and the time limit of each in seconds."""

    spec: ToolSpec
    invocation: ToolInvocation
    context: ToolExecutionContext | None
    hooks: Hooks
    seconds: float


async def execute_call(
    call: ExecutionRequest, provider: ToolProvider, settings: ToolSettings
) -> ToolExecutionResult:
    """The result of the tool, or of the first ``before`` hook that answers instead of it.

    The arguments were checked before. Every error becomes a failed result. When cancelled, the tool
    was cancelled too.
    """
    for hook in call.hooks.before:
        if answer := await _settled(call, _asked(hook, call.spec, call.invocation, call.context)):
            return answer
    if settings.mock_enabled:
        return outcomes.mocked_result(
            call.spec.name, render_mock(settings.mock_value, call.invocation.arguments)
        )
    result = await _settled(call, _invoked(call, provider))
    return result or outcomes.failed_result(call.spec.name, "原因未知")


async def run_after_hooks(
    call: ExecutionRequest, result: ToolExecutionResult
) -> ToolExecutionResult:
    """``result`` after the hooks that follow a call."""
    if call.hooks.on_error and not result.success:
        result = await _first(call.hooks.on_error, call, result)
    return await _first(call.hooks.after, call, result)


async def _first(
    hooks: Sequence[AfterHook], call: ExecutionRequest, result: ToolExecutionResult
) -> ToolExecutionResult:
    for hook in hooks:
        if answer := await _settled(
            call, _asked(hook, call.spec, call.invocation, call.context, result)
        ):
            return answer
    return result


async def _asked(hook: BeforeHook | AfterHook, *arguments: Any) -> ToolExecutionResult | None:
    answer: Any = hook(*arguments)
    if inspect.isawaitable(answer):
        answer = await answer
    if not isinstance(answer, ToolExecutionResult | None):
        raise TypeError(f"a hook returned {type(answer).__name__} and no result")
    return None if answer is None else validate_result(answer)


async def _invoked(call: ExecutionRequest, provider: ToolProvider) -> ToolExecutionResult:
    work = provider.invoke(call.invocation, call.context)
    result = await (
        BlockingWatch(work, partial(_held_up, call)) if inspect.iscoroutine(work) else work
    )
    if not isinstance(result, ToolExecutionResult):
        raise TypeError(f"{provider.provider_name} returned {type(result).__name__} and no result")
    result = validate_result(result)
    if RESERVED_METADATA & result.metadata.keys():
        result = replace(
            result,
            metadata={
                key: value for key, value in result.metadata.items() if key not in RESERVED_METADATA
            },
        )
    schema, value = call.spec.output_schema, result.structured_content
    if (
        schema is not None
        and value is not None
        and result.success
        and (problems := await _output_problems(call, schema, value))
    ):
        return outcomes.mismatched_result(call.spec.name, problems)
    return result


def _held_up(call: ExecutionRequest, seconds: float) -> None:
    logger.warning(
        "tool %s held up the event loop for %.1f s; as a plain function it would run in a thread",
        call.spec.name,
        seconds,
    )


async def _output_problems(call: ExecutionRequest, schema: JsonSchema, value: Any) -> list[str]:
    """What is wrong with a structured result; nothing where the schema itself is."""
    try:
        try:
            check_size(value)
        except InvalidArguments:  # so much takes long to check
            return await run_in_thread(lambda: schema_messages(schema, value))
        return schema_messages(schema, value)
    except UNUSABLE_SCHEMA as error:
        logger.warning("the output schema of tool %s cannot be used: %s", call.spec.name, error)
        return []


async def _settled(call: ExecutionRequest, work: Awaitable[Any]) -> ToolExecutionResult | None:
    """The result of ``work`` within its time limit, in a form fit for the model."""
    with capture_error() as attempt:
        async with time_limit(call.seconds) as limit:
            result = await contain(work)
        return None if result is None else outcomes.clip_result(outcomes.normalize_failure(result))
    return _failure(call, attempt.error, is_late=limit.expired())


def _failure(
    call: ExecutionRequest, error: Exception | None, *, is_late: bool
) -> ToolExecutionResult:
    name = call.spec.name
    match error:
        case InvalidArguments():
            return outcomes.invalid_arguments_result(name, error)
        case ToolFailed() | None:
            return outcomes.raised_result(name, error or ToolFailed("原因未知"))
        case _ if is_late:
            logger.warning("tool %s was stopped after %g s", name, call.seconds)
            return outcomes.timed_out_result(
                name, call.seconds, call.spec.metadata.get("on_timeout")
            )
        case _:
            logger.error("tool %s raised", name, exc_info=error)
            return outcomes.raised_result(name, error)
