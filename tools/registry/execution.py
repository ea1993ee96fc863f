"""One call on its way: its approval, its hooks, the tool itself or its mock, and the check that
what came back follows the contract.

A run, the tool it calls, and the run of another agent inside that tool each have a limit of their
own, nested. A tool that waits, for a person or for a time, pauses all limits around it.

What may be done before and after every call, or the calls of one tool, in Google ADK's order.

::

    before    the first that answers wins, and the tool is not run
    (the tool)
    on_error  only after a failure; the first that answers wins, with a success or another failure
    after     always; the first that answers wins

Hooks of the registry come before the tool's own. A hook answers with a result, or with
None to leave things as they are; one that raises has answered with a failure.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from django.utils.translation import gettext

from tools.contract import (
    CallBasis,
    InvalidArguments,
    InvalidDeclaration,
    JsonSchema,
    OutcomeUnknown,
    RecordedCall,
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
    ToolProvider,
    ToolSpec,
    Undo,
)
from tools.error_boundary import LogLimit, capture_error, contain
from tools.models.tool_config import ApprovalMode
from tools.processes.threads import run_in_thread
from tools.refusals import RefusalReason, ToolRefusal
from tools.registry import catalogue
from tools.registry.settings import ToolSettings
from tools.schemas.arguments import UNUSABLE_SCHEMA, check_size, schema_messages
from tools.schemas.validation_messages import limit_lines
from tools.text.placeholders import render_mock
from tools.text.storable import make_storable

LEVELS = 100
"""Of nested objects and lists; code that walks over them goes as deep as they do."""
UNDO_SECONDS = 60
UNDO_CHARS = 500
RAISED = "E_PLUGIN_FAILED"
"""Of a plugin whose own code said that it could not; other codes are about its process."""
_RESULT: Mapping[str, type] = {
    "success": bool,
    "content": str,
    "error_message": str,
    "content_items": list,
    "post_history_messages": list,
    "metadata": dict,
}
_ITEM: Mapping[str, type] = dict.fromkeys(
    ("content_type", "text", "data", "mime_type", "uri", "name", "description"), str
)


def validate_result(result: ToolExecutionResult) -> ToolExecutionResult:
    """``result``, whose structured content is JSON or else its text, and whose messages can be
    sent.

    Raises TypeError when a field of it is of another type than the contract says.
    """
    _refuse_other(result, _RESULT)
    if result.content_items:
        result = replace(result, content_items=[_item(item) for item in result.content_items])
    if messages := result.post_history_messages:
        if not (all(isinstance(message, dict) for message in messages) and is_json(messages)):
            raise TypeError("post_history_messages are no messages")
        result = replace(result, post_history_messages=list(make_storable(messages)))
    value = result.structured_content
    if value is None or isinstance(value, str) or is_json(value):
        return result
    return replace(result, structured_content=str(value))


def check_declaration(spec: ToolSpec) -> str:
    """Why ``spec`` cannot be offered to a model; "" when it can."""
    schema = spec.parameters_schema
    if schema is not None and (
        not isinstance(schema, dict) or schema.get("type", "object") != "object"
    ):
        return "the parameters are no JSON schema of an object"
    if not isinstance(spec.metadata, dict):
        return "the metadata is no object"
    if not is_json(declared := [spec.description, schema]) or make_storable(declared) != declared:
        return "the declaration is no JSON"
    return ""


def is_json(value: object) -> bool:
    """Whether ``value`` can be written as JSON that every reader takes: no NaN, and no deeper than
    :data:`LEVELS`."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return text.count("[") + text.count("{") <= LEVELS or not _is_deep(value)


def _is_deep(value: Any) -> bool:
    """Whether ``value`` has more than :data:`LEVELS` levels."""
    level = [value]
    for _ in range(LEVELS + 1):
        level = [one for one in level if isinstance(one, dict | list | tuple)]
        if not level:
            return False
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]
    return True


def _item(item: object) -> ToolContentItem:
    if not isinstance(item, ToolContentItem):
        raise TypeError(f"{type(item).__name__} is no content item")
    _refuse_other(item, _ITEM)
    words = {name: getattr(item, name) for name in _ITEM}
    return item if (sound_words := make_storable(words)) == words else replace(item, **sound_words)


def _refuse_other(value: object, wanted: Mapping[str, type]) -> None:
    for name, kind in wanted.items():
        if not isinstance(found := getattr(value, name), kind):
            raise TypeError(f"{name} is {type(found).__name__} and no {kind.__name__}")


ApprovalRule = bool | Callable[[dict[str, object]], bool]
"""Every call, none, or those for whose checked arguments the function returns true."""


def requires_approval(spec: ToolSpec, settings: ToolSettings, arguments: dict[str, object]) -> bool:
    """Whether a call with these checked arguments needs approval. A rule that fails counts as
    yes."""
    if settings.requires_approval != ApprovalMode.OWN:
        return settings.requires_approval != ApprovalMode.NEVER
    rule = spec.metadata.get("requires_approval", False)
    if not callable(rule):
        return bool(rule)
    with capture_error() as attempt:
        return bool(rule(arguments))
    logger.error(
        "whether tool %s needs approval cannot be told; it does", spec.name, exc_info=attempt.error
    )
    return True


def validate_approval_rule(rule: object) -> ApprovalRule:
    """``rule``, or :class:`InvalidDeclaration` for what is neither a truth value nor a function of
    the arguments."""
    if isinstance(rule, bool):
        return rule
    if not callable(rule) or inspect.iscoroutinefunction(rule) or not _takes_one(rule):
        raise InvalidDeclaration(
            f"requires_approval is a bool or a plain function of the arguments, not {rule!r}"
        )
    return rule


def _takes_one(rule: Callable[..., object]) -> bool:
    try:
        inspect.signature(rule).bind({})
    except (TypeError, ValueError):
        return False
    return True


HookAnswer = ToolExecutionResult | None
BeforeHook = Callable[
    [ToolSpec, ToolInvocation, ToolExecutionContext | None], Awaitable[HookAnswer]
]
AfterHook = Callable[
    [ToolSpec, ToolInvocation, ToolExecutionContext | None, ToolExecutionResult],
    Awaitable[HookAnswer],
]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Hooks, in the order in which they are called.

    ``before`` gets checked arguments and may change them in place; they are not checked again. A
    call that is refused or has invalid arguments does not start: ``before`` is not called,
    ``on_error`` and ``after`` are.
    """

    before: tuple[BeforeHook, ...] = ()
    after: tuple[AfterHook, ...] = ()
    on_error: tuple[AfterHook, ...] = ()

    def __add__(self, other: "Hooks") -> "Hooks":
        return Hooks(
            self.before + other.before, self.after + other.after, self.on_error + other.on_error
        )


NO_HOOKS = Hooks()


def hooks_of(spec: ToolSpec) -> Hooks:
    """The tool's own hooks."""
    hooks = spec.metadata.get("hooks")
    return hooks if isinstance(hooks, Hooks) else NO_HOOKS


OWN_CHECKS_KEY = "own_messages"
"""The entry of a spec's metadata with a plain function of arguments and context: the faults that
the tool would
find in arguments that need not fit its schema, as lines that begin with their place."""


def add_own_messages(
    error: InvalidArguments, spec: ToolSpec, context: ToolExecutionContext | None
) -> InvalidArguments:
    """``error``, which the schema of ``spec`` made, with the tool's own faults behind it: one line
    for each place.

    So the model can fix all of them in one go. The tool checks again when the schema finds nothing.
    """
    ask = spec.metadata.get(OWN_CHECKS_KEY)
    if not callable(ask):
        return error
    found: list[str] = []
    with capture_error() as attempt:
        found = [
            line
            for line in ask(error.arguments, context or ToolExecutionContext())
            if not _is_named(line, error)
        ]
    if attempt.error is not None:
        logger.error(
            "tool %s cannot say what is wrong with its arguments", spec.name, exc_info=attempt.error
        )
    return InvalidArguments(limit_lines([*error.problems, *found]), error.arguments)


def _is_named(line: str, error: InvalidArguments) -> bool:
    """Whether the schema found an error at the same place, or inside it."""
    path = line.partition(" ")[0]
    others = [problem.partition(" ")[0] for problem in error.problems]
    return any(other == path or other.startswith((f"{path}.", f"{path}[")) for other in others)


_around: ContextVar[tuple["_Limit", ...]] = ContextVar("limits", default=())


@dataclass(slots=True)
class _Limit:
    """A limit that applies to some work; work that runs on after it may still hold it."""

    timeout: asyncio.Timeout
    is_over: bool = False

    def move(self, when: float | None) -> None:
        if not (self.is_over or self.timeout.expired()):
            self.timeout.reschedule(when)


@asynccontextmanager
async def time_limit(seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
    """``asyncio.timeout(seconds)`` that :func:`pause_timeouts` holds. Raises ``TimeoutError`` when
    it is over; None is no limit."""
    async with asyncio.timeout(seconds) as timeout:
        limit = _Limit(timeout)
        token = _around.set((*_around.get(), limit))
        try:
            yield timeout
        finally:
            limit.is_over = True
            _around.reset(token)


@contextmanager
def pause_timeouts() -> Iterator[None]:
    """Inside, no limit around runs out; afterwards each has the time that it had left."""
    now = asyncio.get_running_loop().time
    begun = now()
    held = [(limit, when) for limit in _around.get() if (when := limit.timeout.when()) is not None]
    for limit, _ in held:
        limit.move(None)
    try:
        yield
    finally:
        for limit, when in held:
            limit.move(when + now() - begun)


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
    def __init__(self, work: Coroutine[Any, Any, object], report: Callable[[float], None]) -> None:
        self._work = work
        self._report = report

    def send(self, value: object) -> object:
        return self._timed(self._work.send, value)

    def throw(self, *error: object) -> object:
        return self._timed(self._work.throw, *error)

    def _timed(self, step: Callable[..., object], *arguments: object) -> object:
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
    *("verdict", "decided_by", "stood_in", "stopped"),
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
        return catalogue.mocked_result(
            call.spec.name, render_mock(settings.mock_value, call.invocation.arguments)
        )
    result = await _settled(call, _invoked(call, provider))
    return result or catalogue.failed_result(call.spec.name, "原因未知")


LookAhead = Callable[[ToolInvocation, ToolExecutionContext], Awaitable[CallBasis]]


async def look_ahead(call: ExecutionRequest) -> CallBasis | ToolExecutionResult:
    """What the tool finds before ``call`` is made; the refused result of one that is not to be."""
    look: LookAhead | None = call.spec.metadata.get("look_ahead")
    if look is None:
        return CallBasis()
    name = call.spec.name
    with capture_error() as attempt:
        async with time_limit(call.seconds) as limit:
            return await contain(look(call.invocation, call.context or ToolExecutionContext()))
    if isinstance(attempt.error, ToolFailed):
        refusal = ToolRefusal(RefusalReason.NOT_PERMITTED, attempt.error.text)
        return catalogue.refused_result(name, refusal)
    if limit.expired():
        return catalogue.timed_out_result(name, call.seconds)
    return _failure(call, attempt.error, is_late=False)


async def run_after_hooks(
    call: ExecutionRequest, result: ToolExecutionResult
) -> ToolExecutionResult:
    """``result`` after the hooks that follow a call."""
    if call.hooks.on_error and not result.success:
        result = await _first(call.hooks.on_error, call, result)
    return await _first(call.hooks.after, call, result)


async def undo_by_tool(
    provider: ToolProvider, name: str, call: RecordedCall, context: ToolExecutionContext
) -> str:
    """Take ``call`` back by the tool ``name`` of its provider."""
    result = call.content if call.structured_content is None else call.structured_content
    given = ToolInvocation(name, {"arguments": call.arguments, "result": result})
    done = await provider.invoke(given, context)
    if done.success:
        return done.get_history_content()
    was_made = done.metadata.get("error_code") in (None, RAISED)
    raise (ToolFailed if was_made else OutcomeUnknown)(done.get_history_content())


async def refuse_undo(call: RecordedCall, context: ToolExecutionContext) -> str:
    """The ``undo`` of what stays as it is, where that is to be said."""
    raise ToolFailed(gettext("nothing takes it back"))


async def run_undo(undo: Undo, call: RecordedCall, context: ToolExecutionContext) -> str:
    """What ``undo`` says, within its time. Raises :class:`ToolFailed` alone."""
    with capture_error() as attempt:
        async with asyncio.timeout(UNDO_SECONDS):
            return (await contain(undo(call, context)))[:UNDO_CHARS]
    if isinstance(attempt.error, ToolFailed):
        raise attempt.error
    logger.error("the undo of tool %s raised", call.tool_name, exc_info=attempt.error)
    raise OutcomeUnknown("") from attempt.error  # what broke is for the log, not for the chat


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
        return catalogue.failed_result(call.spec.name, catalogue.mismatch_message(problems))
    return result


def _held_up(call: ExecutionRequest, seconds: float) -> None:
    logger.warning(
        "tool %s held up the event loop for %.1f s; as a plain function it would run in a thread",
        call.spec.name,
        seconds,
    )


async def _output_problems(call: ExecutionRequest, schema: JsonSchema, value: object) -> list[str]:
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
        return (
            None if result is None else catalogue.clip_result(catalogue.normalize_failure(result))
        )
    return _failure(call, attempt.error, is_late=limit.expired())


def _failure(
    call: ExecutionRequest, error: Exception | None, *, is_late: bool
) -> ToolExecutionResult:
    name = call.spec.name
    match error:
        case InvalidArguments():
            return catalogue.invalid_arguments_result(name, error)
        case ToolFailed() | None:
            return catalogue.raised_result(name, error or ToolFailed("原因未知"))
        case _ if is_late:
            logger.warning("tool %s was stopped after %g s", name, call.seconds)
            return catalogue.timed_out_result(
                name, call.seconds, call.spec.metadata.get("on_timeout")
            )
        case _:
            logger.error("tool %s raised", name, exc_info=error)
            return catalogue.raised_result(name, error)
