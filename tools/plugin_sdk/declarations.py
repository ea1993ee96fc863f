"""``Plugin``, the base of plugins that are classes, and ``@Tool``: a function or a method of a
plugin, offered to the model.

``@Action``: what plugins had before ``@Tool``, turned into the declaration of a tool.

The ways in which plugins write down parameters, as JSON Schema. Pure.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tools.contract import InvalidDeclaration, JsonSchema
from tools.plugin_sdk.context import Context, ctx
from tools.plugin_sdk.types import ActivationType, ChatMode, ToolParameterInfo
from tools.schemas.signatures import function_name

_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
"""Python's words for JSON's; old plugins use both."""

GivenParameters = Sequence[ToolParameterInfo] | Mapping[str, Any]


def parameters_schema(parameters: GivenParameters) -> JsonSchema:
    """The schema that ``parameters`` are: one already, a schema for each name, or a list of
    :class:`ToolParameterInfo`.

    Raises :class:`InvalidDeclaration` for anything else.
    """
    if isinstance(parameters, Mapping):
        if isinstance(parameters.get("type"), str) or isinstance(
            parameters.get("properties"), Mapping
        ):
            return {"type": "object", "properties": {}, **parameters}
        return _of_properties(parameters)
    infos = list(parameters)
    if not all(isinstance(info, ToolParameterInfo) for info in infos):
        raise InvalidDeclaration(
            "parameters is neither a JSON schema nor a list of ToolParameterInfo"
        )
    return {
        "type": "object",
        "properties": {info.name: _property(info) for info in infos},
        "required": [info.name for info in infos if info.required],
        "additionalProperties": False,
    }


def texts_schema(parameters: Mapping[str, object]) -> JsonSchema:
    """The schema of an old Action's parameters: texts all of them, and none must be given."""
    return {
        "type": "object",
        "properties": {
            str(name): {"type": "string", "description": str(words)}
            for name, words in parameters.items()
        },
    }


def drop_properties(schema: JsonSchema, names: frozenset[str]) -> JsonSchema:
    """``schema`` without the properties of these ``names``."""
    properties = schema.get("properties", {})
    if not names & properties.keys():
        return schema
    left = {name: each for name, each in properties.items() if name not in names}
    return {
        **schema,
        "properties": left,
        "required": [name for name in schema.get("required", []) if name not in names],
    }


def _of_properties(properties: Mapping[str, Any]) -> JsonSchema:
    """A schema for each name; whether one is required may stand inside it, as old plugins have
    it."""
    if not all(isinstance(each, Mapping) for each in properties.values()):
        raise InvalidDeclaration("parameters is neither a JSON schema nor a schema for each name")
    return {
        "type": "object",
        "properties": {
            name: {
                key: _kind(value) if key == "type" else value
                for key, value in each.items()
                if key != "required" or value not in (True, False)
            }
            for name, each in properties.items()
        },
        "required": [name for name, each in properties.items() if each.get("required") is True],
    }


def _property(info: ToolParameterInfo) -> JsonSchema:
    said = {
        "type": _kind(str(info.param_type)),
        "description": info.description or None,
        "enum": list(info.enum_values) if info.enum_values else None,
        "items": info.items_schema,
        "properties": info.properties,
        "required": list(info.required_properties) if info.required_properties else None,
        "additionalProperties": info.additional_properties,
        "default": info.default,
    }
    return {key: value for key, value in said.items() if value is not None}


def _kind(word: object) -> Any:
    return _TYPES.get(word, word) if isinstance(word, str) else word


F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__plugin_tool__"


class MaiBotPlugin:
    """A plugin. Its methods that carry :func:`tools.plugin_sdk.Tool` are its tools.

    ``plugin.py`` has one subclass of this, or a function ``create_plugin()`` that returns
    an instance. The methods below may be ``async def`` or ``def``.
    """

    @property
    def ctx(self) -> Context:
        return ctx

    @property
    def config(self) -> Mapping[str, Any]:
        """What the operator has set, by the manifest's ``config_schema``."""
        return ctx.config

    async def on_load(self) -> None:
        """Called once, before the first call. What it raises keeps the plugin from being loaded."""

    async def on_unload(self) -> None:
        """Called before the process ends in good order, within a few seconds."""

    async def on_config_update(self, config: Mapping[str, object]) -> None:
        """Called when the operator has changed the configuration; ``self.config`` is new already.

        MaiBot's form with ``(scope, config_data, version)`` is called as well, with the
        scope "self".
        """


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a tool. ``schema`` None: taken from the function's signature."""

    name: str
    description: str = ""
    detailed_description: str = ""
    title: str = ""
    schema: JsonSchema | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    is_action: bool = False


def Tool(  # noqa: N802 - the name that plugins use
    name: str | Callable[..., Any] = "",
    description: str = "",
    brief_description: str = "",
    detailed_description: str = "",
    parameters: GivenParameters | None = None,
    *,
    title: str = "",
    **metadata: object,
) -> Any:
    """Offer the function below to the model: ``@Tool``, or ``@Tool("name", description="…", …)``.

    Missing values come from the function: its name, its docstring, and its typed parameters. The
    model gets ``description``, or else ``brief_description``; ``detailed_description`` is for
    people.

    These entries of ``metadata`` are used: ``visibility`` ("visible", "deferred" or "hidden"),
    ``core_tool`` (True: shown to the model in full), ``timeout_ms`` and ``requires_approval``
    (True: each call needs an owner's approval), which are initial values that the operator may
    change; ``chat_scope`` ("all", "group" or "private") and ``allowed_session`` (a list of
    sessions, groups or ``platform:group``), which the operator can only narrow;
    ``is_long_running``, which stays as it is; and ``undo``, the name of another tool of the
    plugin, which takes a call back: it is called with ``arguments``, those of the call, and
    ``result``, what came of it.

    Raises :class:`InvalidDeclaration` for what cannot be offered.
    """
    if callable(name):
        return attach_declaration(name, Declaration(function_name(name)))
    _check(metadata)

    def declare(function: F) -> F:
        said = Declaration(
            name=function_name(function, name or None),
            description=description or brief_description,
            detailed_description=detailed_description,
            title=title,
            schema=None if parameters is None else parameters_schema(parameters),
            metadata=metadata,
        )
        return attach_declaration(function, said)

    return declare


def attach_declaration(function: F, declaration: Declaration) -> F:
    """``function`` itself, with ``declaration`` written on it."""
    setattr(function, _MARK, declaration)
    return function


def declaration_of(thing: object) -> Declaration | None:
    """What was declared of ``thing``, a function or a bound method; None for everything else."""
    found = getattr(thing, _MARK, None) if callable(thing) and not isinstance(thing, type) else None
    return found if isinstance(found, Declaration) else None


_WORDS = {
    "visibility": {"visible", "deferred", "hidden"},
    "chat_scope": {"all", "group", "private"},
}


def _check(metadata: dict[str, Any]) -> None:
    for name, allowed in _WORDS.items():
        if (value := metadata.get(name)) is not None and value not in allowed:
            raise InvalidDeclaration(f"{name} is {value!r}; it can be {', '.join(sorted(allowed))}")
    timeout = metadata.get("timeout_ms")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int) or timeout <= 0
    ):
        raise InvalidDeclaration(f"timeout_ms is {timeout!r}; milliseconds above 0 are wanted")


def Action(  # noqa: N802 - the name that plugins use
    name: str,
    description: str = "",
    activation_type: ActivationType | str = ActivationType.ALWAYS,
    activation_keywords: Sequence[str] = (),
    activation_probability: float = 1.0,
    chat_mode: ChatMode | str = ChatMode.NORMAL,
    action_parameters: Mapping[str, object] | None = None,
    action_require: Sequence[str] = (),
    associated_types: Sequence[str] = (),
    parallel_action: bool = False,
    action_prompt: str = "",
    **metadata: object,
) -> Callable[[F], F]:
    """Offer the function below to the model. Deprecated: new plugins use
    :func:`tools.plugin_sdk.Tool`.

    Every parameter is an optional text. The description that the model gets includes when to use
    the action; the activation type is only recorded. The function is called with ``stream_id``,
    ``chat_id``, ``reasoning`` and ``action_data`` (the arguments) in addition to its arguments.
    """
    warnings.warn(f"@Action({name!r}) is deprecated: use @Tool", DeprecationWarning, stacklevel=2)
    origin = {
        "activation_type": str(activation_type),
        "activation_keywords": list(activation_keywords),
        "activation_probability": activation_probability,
        "chat_mode": str(chat_mode),
        "parallel_action": parallel_action,
    }
    legacy = {
        "legacy_action": True,
        "legacy_component_type": "ACTION",
        "invoke_method": "plugin.invoke_action",
    }

    def declare(function: F) -> F:
        said = Declaration(
            name=function_name(function, name),
            description=long_description(
                description, action_require, associated_types, action_prompt
            ),
            schema=texts_schema(action_parameters or {}),
            metadata={**metadata, **legacy, **origin},
            is_action=True,
        )
        return attach_declaration(function, said)

    return declare


def long_description(
    description: str, require: Sequence[str], associated_types: Sequence[str], prompt: str
) -> str:
    """One text for the model of all that an Action said of itself."""
    parts = [description.strip()]
    if require:
        parts.append("\n".join(["使用场景：", *(f"- {condition}" for condition in require)]))
    if associated_types:
        parts.append(f"涉及的消息类型：{'、'.join(map(str, associated_types))}")
    return "\n".join(part for part in [*parts, prompt.strip()] if part)
