"""Function tools: any typed Python function, offered to the model unchanged.

::

    @tool
    async def add(a: int, b: int) -> int:
        \"\"\"Add two numbers.\"\"\"
        return a + b

Name, description and schemas come from the function; arguments of :func:`tool` override them. The
shape follows Google ADK's function tools.

The provider of function tools.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, TypedDict, Unpack, overload

from pydantic import Field
from pydantic_core import to_jsonable_python

from tools.contract import (
    InvalidArguments,
    InvalidDeclaration,
    JsonSchema,
    ToolAnnotation,
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolIcon,
    ToolInvocation,
    ToolSpec,
    Undo,
)
from tools.error_boundary import LogLimit
from tools.processes.threads import run_in_thread
from tools.registry import catalogue
from tools.registry.catalogue import DefaultConfig
from tools.registry.execution import (
    OWN_CHECKS_KEY,
    ApprovalRule,
    Hooks,
    LookAhead,
    validate_approval_rule,
)
from tools.schemas.arguments import schema_messages
from tools.schemas.signatures import (
    DocstringParts,
    Function,
    FunctionParameters,
    function_name,
    read_signature,
    result_adapter,
    result_schema,
)

logger = logging.getLogger(__name__)
LogLimit(logger, named=1)

NonBlank = Annotated[str, Field(pattern=r"\S")]
"""Text that says something: empty and blank text is refused before the tool is called."""

ToolStage = Literal["timing", "action", "both"]
"""When a tool is offered: to the timing gate, to the planner after it, or to both."""
ToolTrait = Literal["ends_run", "exclusive", "repeatable", "speaks"]
"""``ends_run``: its success is the end of the run. ``exclusive``: made only when it is the one call
of an answer. ``repeatable``: a call that a crash cut off is made again, with
``invocation.begun_at``."""
OwnChecks = Callable[[dict[str, object], ToolExecutionContext], Sequence[str]]


class ToolOptions(TypedDict, total=False):
    """Options of a tool, beyond its function; every entry wins over what was inferred."""

    name: str
    description: str
    title: str
    parameters_schema: JsonSchema
    """Used as it is; the function must take what it allows."""
    output_schema: JsonSchema
    """Of the structured result; a result that does not match it is a failure."""
    default_config: DefaultConfig
    """First values of the tool's row."""
    annotation: ToolAnnotation
    icons: list[ToolIcon]
    """For the pages that list tools."""
    available: Callable[[ToolAvailabilityContext], bool]
    """In which chats the tool is offered; without it, in all."""
    is_on: Callable[[], bool]
    """What switches the tool on anywhere: a setting, or whether there is anything to work with."""
    needs_chat: bool
    """Offered only where there is a chat to speak in."""
    own_roles: tuple[str, ...]
    """In groups offered only where the bot has one of these roles."""
    lenient: bool
    """Unknown arguments are left out and not refused, and defaults are not declared."""
    own_checks: OwnChecks
    """The faults that only the tool finds, asked before each call; also of arguments that do not
    fit the schema (:mod:`tools.registry.execution`)."""
    stage: ToolStage
    traits: tuple[ToolTrait, ...]
    on_timeout: str
    """What the model gets when the time is up and the effect may be in the world; without it, of
    a plain failure."""
    is_long_running: bool
    """The result may be a status alone, with the real one to come later; the model is asked not to
    call again."""
    look_ahead: LookAhead
    """Asked before a call is made, and before anybody is asked to approve it: raises
    :class:`ToolFailed` where it is not to be made."""
    requires_approval: ApprovalRule
    """Which calls wait for an owner, unless the row says otherwise: all, none, or by the checked
    arguments."""
    hooks: Hooks
    """What is asked before and after the calls of this tool, after the registry's own hooks."""
    undo: Undo
    """An ``async def`` that takes a call back, for ``/undo``."""
    describe_now: Callable[[ToolSpec], ToolSpec]
    """Makes of the declaration the one that counts at this moment: the same object while nothing
    is different. Asked before each listing, without I/O."""


class FunctionTool:
    """One function with its :class:`ToolSpec`, called with a JSON object.

    Raises :class:`tools.contract.InvalidDeclaration` for a function that cannot be
    described.
    """

    def __init__(self, function: Function, **options: Unpack[ToolOptions]) -> None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise InvalidDeclaration(f"{function!r} yields its results; a tool returns one")
        words = DocstringParts.of(function)
        self.function = function
        self._options = options
        self._parameters = FunctionParameters(
            function, words.parameters, lenient=options.get("lenient", False)
        )
        self._result = result_adapter(read_signature(function).return_annotation)
        self._output_schema = options.get("output_schema")
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            type(function).__call__
        )
        self.spec = ToolSpec(
            name=function_name(function, options.get("name")),
            description=options.get("description", words.description),
            title=options.get("title", ""),
            parameters_schema=options.get("parameters_schema") or self._parameters.schema(),
            output_schema=self._output_schema or result_schema(self._result),
            annotation=options.get("annotation"),
            icons=options.get("icons", []),
            metadata=_metadata(options),
        )

    @property
    def is_conditional(self) -> bool:
        """Whether more than a chat to speak in decides where the tool is offered."""
        return "is_on" in self._options or "available" in self._options

    def describe_now(self, spec: ToolSpec) -> ToolSpec:
        """``spec``, which is the tool's as its provider offers it, as it is at this moment."""
        describe = self._options.get("describe_now")
        return describe(spec) if describe else spec

    @property
    def is_live(self) -> bool:
        """Whether what is declared may change."""
        return "describe_now" in self._options

    def is_available(self, context: ToolAvailabilityContext | None) -> bool:
        """Whether the tool is offered in ``context`` (None: anywhere at all)."""
        if "is_on" in self._options and not self._options["is_on"]():
            return False
        if context is None:
            return True
        if self._options.get("needs_chat") and not context.session_id:
            return False
        roles = self._options.get("own_roles")
        if roles and context.is_group_chat and context.own_role not in roles:
            return False
        return "available" not in self._options or self._options["available"](context)

    async def __call__(
        self,
        arguments: Mapping[str, object],
        context: ToolExecutionContext | None = None,
        invocation: ToolInvocation | None = None,
    ) -> ToolExecutionResult:
        """Call the function; every exception becomes a failed result.

        A synchronous function runs in a thread, and continues there when this call is cancelled.
        Raises only :class:`InvalidArguments`, before the function or from it.
        """
        name = self.spec.name
        try:
            return self._as_result(
                await self._called(
                    arguments,
                    context or ToolExecutionContext(),
                    invocation or ToolInvocation(name, dict(arguments)),
                )
            )
        except InvalidArguments:
            raise
        except ToolFailed as error:
            return catalogue.raised_result(name, error)
        except (Exception, SystemExit) as error:
            logger.exception("tool %s raised", name)
            return catalogue.raised_result(name, error)

    async def _called(
        self,
        arguments: Mapping[str, object],
        context: ToolExecutionContext,
        invocation: ToolInvocation,
    ) -> object:
        if (checks := self._options.get("own_checks")) and (
            problems := checks(dict(arguments), context)
        ):
            raise InvalidArguments(problems)
        positional, named = self._parameters.bind(arguments, context, invocation)
        call = partial(self.function, *positional, **named)
        value = call() if self._is_async else await run_in_thread(call)
        return await value if inspect.isawaitable(value) else value

    def _as_result(self, value: object) -> ToolExecutionResult:
        """``value`` as JSON, checked against the function's return annotation: text is content; an
        object is structured content, and so is everything else, under ``result``."""
        name = self.spec.name
        if isinstance(value, ToolExecutionResult):
            return value
        if self._result is None:
            plain = to_jsonable_python(value)
        else:
            checked = self._result.validate_python(value)
            plain = self._result.dump_python(checked, mode="json", by_alias=True)
        structured = (
            plain if isinstance(plain, dict) else {} if plain is None else {"result": plain}
        )
        if self._output_schema is not None and (
            problems := schema_messages(self._output_schema, structured)
        ):
            raise ToolFailed(catalogue.mismatch_message(problems))
        if plain is None:
            return ToolExecutionResult(name, success=True)
        if isinstance(plain, str):
            return ToolExecutionResult(name, success=True, content=plain)
        return ToolExecutionResult(name, success=True, structured_content=structured)


_OBEYED = {name: name for name in ("default_config", "is_long_running", "hooks", "on_timeout")} | {
    "look_ahead": "look_ahead",
    "undo": "undo",
    "traits": "traits",
    "stage": "builtin_stage",
    "own_checks": OWN_CHECKS_KEY,
}
"""The options that go into the spec's metadata, and under which names."""


def _metadata(options: ToolOptions) -> dict[str, object]:
    """The options that the registry obeys, those only that were given."""
    given: Mapping[str, object] = {**options}
    metadata = {key: given[name] for name, key in _OBEYED.items() if given.get(name)}
    if rule := validate_approval_rule(options.get("requires_approval", False)):
        metadata["requires_approval"] = rule
    if "undo" in metadata and not inspect.iscoroutinefunction(metadata["undo"]):
        raise InvalidDeclaration(f"undo is an async function, not {metadata['undo']!r}")
    return metadata


@overload
def tool(function: Function, /) -> FunctionTool: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Function], FunctionTool]: ...


def tool(
    function: Function | None = None, /, **options: Unpack[ToolOptions]
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a :class:`FunctionTool` of a function: ``@tool``, or ``@tool(name=…, …)``."""
    if function is not None:
        return FunctionTool(function, **options)
    return lambda wrapped: FunctionTool(wrapped, **options)


class FunctionProvider:
    """A fixed set of function tools under one provider's name.

    Raises :class:`InvalidDeclaration` when two of them have one name.
    """

    def __init__(
        self, provider_name: str, provider_type: str, tools: Iterable[FunctionTool]
    ) -> None:
        self.provider_name = provider_name
        self.provider_type = provider_type
        self._offers: dict[str, tuple[FunctionTool, ToolSpec]] = {}
        for tool in tools:
            spec = replace(tool.spec, provider_name=provider_name, provider_type=provider_type)
            if spec.name in self._offers:
                raise InvalidDeclaration(f"duplicate tool: {spec.name}")
            self._offers[spec.name] = (tool, spec)
        self._conditional = [tool for tool, _ in self._offers.values() if tool.is_conditional]
        self._live = [offer for offer in self._offers.values() if offer[0].is_live]

    @property
    def specs(self) -> list[ToolSpec]:
        """Every tool, wherever it is offered."""
        return [spec for _, spec in self._offers.values()]

    def listing_key(self, context: ToolAvailabilityContext | None) -> tuple[object, ...]:
        where = None if context is None else (bool(context.session_id), context.own_role)
        return (
            where,
            *(tool.is_available(context) for tool in self._conditional),
            *(tool.describe_now(spec) for tool, spec in self._live),
        )

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return [
            tool.describe_now(spec)
            for tool, spec in self._offers.values()
            if tool.is_available(context)
        ]

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        """Call the function. Raises :class:`tools.contract.InvalidArguments` as the function tool
        does."""
        offer = self._offers.get(invocation.tool_name)
        if offer is None:
            return catalogue.not_found_result(invocation.tool_name)
        return await offer[0](invocation.arguments, context, invocation)

    async def close(self) -> None:
        """Functions hold nothing."""
