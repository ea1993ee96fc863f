"""One tool of a loaded plugin, on the plugin's side: what is declared of it, and how its function
is called."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from tools.contract import InvalidDeclaration, JsonSchema, ToolExecutionContext
from tools.plugin_sdk.calls import Call
from tools.plugin_sdk.declarations import Declaration, drop_properties
from tools.schemas.signatures import DocstringParts, FunctionParameters, read_signature

IDENTITY = frozenset({"stream_id", "chat_id"})
"""Where a call comes from: never asked of the model, even where a plugin declares it."""
CONTEXT = IDENTITY | {"session_id", "group_id", "user_id", "platform", "is_group_chat", "reasoning"}
"""The parameters that a function may have besides the model's arguments."""

Function = Callable[..., object]


@dataclass(frozen=True, slots=True)
class ToolHandler:
    """``name`` and what is ``declared`` of it travel to the server; ``call`` stays here."""

    name: str
    declared: dict[str, Any]
    is_async: bool
    call: Callable[[dict[str, Any], Call], Any]
    """Calls the function with the model's arguments. Raises every exception of the function, and
    :class:`tools.contract.InvalidArguments` for what its annotations do not take."""


def build_handler(function: Function, declaration: Declaration) -> ToolHandler:
    """The tool that ``function`` is; a method must be bound. Raises :class:`InvalidDeclaration`."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidDeclaration(f"{declaration.name} yields its results; a tool returns one")
    taken = _Taken.by(function)
    if declaration.schema is None:
        schema, call = _inferred(function, taken)
    else:
        schema = drop_properties(declaration.schema, IDENTITY)
        call = functools.partial(
            _call_as_declared,
            function,
            taken,
            frozenset(schema.get("properties", {})),
            declaration.is_action,
        )
    _refuse_unusable(schema, declaration.name)
    declared = {
        "name": declaration.name,
        "description": declaration.description or DocstringParts.of(function).description,
        "detailed_description": declaration.detailed_description,
        "title": declaration.title,
        "parameters_schema": to_jsonable(schema),
        "metadata": to_jsonable(declaration.metadata),
    }
    return ToolHandler(declaration.name, declared, inspect.iscoroutinefunction(function), call)


def to_jsonable(value: object) -> object:
    """``value`` as JSON can hold it; bytes become Base64, and what is no data its ``str``."""
    try:
        return to_jsonable_python(value, fallback=str, bytes_mode="base64")
    except (
        PydanticSerializationError,
        ValueError,
        RecursionError,
    ):  # a circle, or text that is none
        return str(value)


@dataclass(frozen=True, slots=True)
class _Taken:
    """The names that a function takes by keyword; ``rest``: and any other."""

    names: frozenset[str]
    rest: bool

    @classmethod
    def by(cls, function: Function) -> "_Taken":
        parameters = read_signature(function).parameters.values()
        names = frozenset(
            each.name
            for each in parameters
            if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        )
        return cls(names, any(each.kind is each.VAR_KEYWORD for each in parameters))

    def of(self, offered: dict[str, object]) -> dict[str, object]:
        return (
            offered
            if self.rest
            else {name: value for name, value in offered.items() if name in self.names}
        )


def _inferred(
    function: Function, taken: _Taken
) -> tuple[JsonSchema, Callable[[dict[str, object], Call], object]]:
    """Schema and call of a function that was declared by its signature alone; the context's names
    are the server's to fill."""
    from_context = taken.names & CONTEXT
    parameters = FunctionParameters(
        functools.partial(function, **dict.fromkeys(from_context)),
        DocstringParts.of(function).parameters,
    )

    def call(arguments: dict[str, Any], call: Call) -> Any:
        # For functions that take the contract's own context.
        context = ToolExecutionContext(
            session_id=call.session_id,
            stream_id=call.stream_id,
            reasoning=call.reasoning,
            is_group_chat=call.is_group_chat,
            group_id=call.group_id,
            user_id=call.user_id,
            platform=call.platform,
        )
        positional, named = parameters.bind(arguments, context)
        return function(
            *positional, **named, **{name: getattr(call, name) for name in from_context}
        )

    return parameters.schema(), call


def _call_as_declared(
    function: Function,
    taken: _Taken,
    declared: frozenset[str],
    is_action: bool,
    arguments: dict[str, object],
    call: Call,
) -> object:
    """Call with the arguments, and with values of the context that the model cannot set.

    A name of the context that the tool declares as a parameter is set by the model; the context is
    used only if it is missing or empty. Any other name is set only by the context.
    """
    context = {name: getattr(call, name) for name in CONTEXT}
    if is_action:
        context["action_data"] = arguments
    own = {
        name: value for name, value in arguments.items() if name in declared or name not in context
    }
    filled = {name: value for name, value in taken.of(context).items() if not own.get(name)}
    return function(**{**own, **filled})


def _refuse_unusable(schema: JsonSchema, name: str) -> None:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidDeclaration(
            f"the parameters of {name} are no JSON schema: {error.message}"[:500]
        ) from error
    if schema.get("type") != "object":
        raise InvalidDeclaration(f"the parameters of {name} are not those of an object")
