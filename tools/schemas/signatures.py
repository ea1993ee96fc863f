"""What a Python function says of itself: its name, its words, and the JSON it can be called
with."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import typing_extensions
from docstring_parser import ParseError, parse as parse_docstring
from pydantic import (
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
)
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from tools.contract import (
    TOOL_NAME,
    InvalidArguments,
    InvalidDeclaration,
    JsonSchema,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.schemas.arguments import resolve_ref
from tools.schemas.validation_messages import EMPTY, UNKNOWN, format_path, limit_lines

T = TypeVar("T")
Function = Callable[..., Any]
_FIELD = "arg_"
"""Before every field name, so that a parameter may be called ``json`` or ``schema`` as well."""
_PLAIN_RESULTS = (inspect.Signature.empty, Any, None, type(None), str, ToolExecutionResult)


class _Schema(GenerateJsonSchema):
    """JSON Schema without the titles that repeat each name."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


class _LenientSchema(_Schema):
    """The same without defaults and null, which are left to the descriptions: null is read as
    "not given"."""

    def default_schema(self, schema: Any) -> JsonSchema:
        return self.generate_inner(schema["schema"])

    def nullable_schema(self, schema: Any) -> JsonSchema:
        return self.generate_inner(schema["schema"])


_KEY_ORDER = (
    *("type", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "items"),
    *("enum", "default", "description"),
)
"""How the schema of a parameter is put in order where its tool is lenient."""


@dataclass(frozen=True, slots=True)
class DocstringParts:
    """A function's docstring, taken apart. Google, NumPy, Sphinx and Epydoc styles are
    understood."""

    description: str
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, function: Function) -> "DocstringParts":
        text = inspect.getdoc(_innermost(function)) or ""
        try:
            doc = parse_docstring(text)
        except ParseError:
            return cls(text, {})
        parts = [part for part in (doc.short_description, doc.long_description) if part]
        return cls(
            "\n\n".join(parts), {param.arg_name: param.description or "" for param in doc.params}
        )


def function_name(function: Function, wanted: str | None = None) -> str:
    """``wanted`` or the function's own name; raises :class:`InvalidDeclaration` for one that no
    endpoint takes."""
    inner = _innermost(function)
    name = wanted or str(getattr(inner, "__name__", type(inner).__name__))
    if not TOOL_NAME.fullmatch(name):
        raise InvalidDeclaration(
            f"{name!r} cannot be the name of a tool: 1 to 64 of A-Z, a-z, 0-9, _ and - are wanted"
        )
    return name


def _innermost(function: Function) -> Function:
    while isinstance(function, functools.partial):
        function = function.func
    return function


class FunctionParameters:
    """The parameters of one function, between JSON objects and Python calls.

    Parameters annotated :class:`ToolExecutionContext` or :class:`ToolInvocation`, and one without
    annotation that is called ``tool_context``, are filled in at the call and hidden from the
    schema; ``*args``, ``**kwargs`` and what a ``functools.partial`` has fixed are left out.

    ``lenient``: unknown arguments are left out and not refused, defaults are not declared, and
    a ``WithJsonSchema`` is declared as it is written.
    """

    def __init__(
        self, function: Function, words: Mapping[str, str], *, lenient: bool = False
    ) -> None:
        signature = read_signature(function)
        fixed = function.keywords if isinstance(function, functools.partial) else {}
        given = [p for p in signature.parameters.values() if p.name not in fixed]
        named = [p for p in given if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        visible = [p for p in named if not _is_context(p) and not _takes(p, ToolInvocation)]
        self._visible = [p.name for p in visible]
        self._contexts = [p.name for p in named if _is_context(p)]
        self._invocations = [p.name for p in named if _takes(p, ToolInvocation)]
        self._positional = [p.name for p in named if p.kind is p.POSITIONAL_ONLY]
        self._is_lenient = lenient
        self._optional = [p.name for p in visible if p.default is not p.empty]
        self._written = {
            p.name: note.json_schema
            for p in visible
            for note in _without_notes(p.annotation)[1]
            if lenient and isinstance(note, WithJsonSchema)
        }
        fields: dict[str, Any] = _described(
            lambda: {_FIELD + p.name: _field(p, words.get(p.name)) for p in visible}
        )
        config = ConfigDict(extra="ignore" if lenient else "forbid", protected_namespaces=())
        self._model = _described(lambda: create_model("Arguments", __config__=config, **fields))

    def schema(self) -> JsonSchema:
        """Their JSON Schema: an object that takes nothing unknown, unless it is lenient."""
        if self._is_lenient:
            return self._lenient_schema()
        schema = _described(
            lambda: _untitled(self._model.model_json_schema(schema_generator=_Schema))
        )
        return {"type": "object", "properties": {}, "required": [], **schema}

    def _lenient_schema(self) -> JsonSchema:
        inferred = _described(
            lambda: self._model.model_json_schema(schema_generator=_LenientSchema)
        )
        schema: JsonSchema = {
            "type": "object",
            "properties": {
                name: self._written.get(name) or _in_order(part)
                for name, part in inferred.get("properties", {}).items()
            },
        }
        return schema | {key: inferred[key] for key in ("required", "$defs") if key in inferred}

    def bind(
        self,
        arguments: Mapping[str, object],
        context: ToolExecutionContext,
        invocation: ToolInvocation | None = None,
    ) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of the call, as the annotated types.

        Raises :class:`InvalidArguments` for what the annotations do not take.
        """
        given = dict(arguments)
        if self._is_lenient:  # a hook may have put null there, as models do
            for name in self._optional:
                if name in given and given[name] is None:
                    del given[name]
        try:
            model = self._model.model_validate(given)
        except ValidationError as error:
            raise InvalidArguments(
                limit_lines(_problem(finding) for finding in error.errors(include_url=False))
            ) from error
        values = {name: getattr(model, _FIELD + name) for name in self._visible}
        values |= dict.fromkeys(self._contexts, context)
        values |= dict.fromkeys(self._invocations, invocation)
        return [values.pop(name) for name in self._positional], values


def read_signature(function: Function) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError) as error:
        raise InvalidDeclaration(
            f"the signature of {function!r} cannot be read: {error}"
        ) from error


def result_adapter(annotation: object) -> TypeAdapter[Any] | None:
    """What checks and serialises results of this return annotation; None for text and where nothing
    is said."""
    if any(annotation is plain for plain in _PLAIN_RESULTS):
        return None
    return _described(lambda: TypeAdapter(convert_typed_dicts(annotation)))


def result_schema(adapter: TypeAdapter[Any] | None) -> JsonSchema | None:
    """The schema of ``structured_content``: what is no object stands under ``result``.

    None where only the value itself decides whether it is an object.
    """
    if adapter is None:
        return None
    schema = _described(
        lambda: _untitled(adapter.json_schema(mode="serialization", schema_generator=_Schema))
    )
    branches = schema.get("anyOf") or schema.get("oneOf") or [schema]
    kinds = {resolve_ref(branch, schema).get("type") for branch in branches}
    if kinds == {"object"}:
        return {**schema, "type": "object"}
    if kinds & {"object", None}:
        return None
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    return {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        **definitions,
    }


def _described(describe: Callable[[], T]) -> T:
    try:
        return describe()
    except (PydanticUserError, AttributeError, NameError, TypeError, RecursionError) as error:
        raise InvalidDeclaration(f"failed to infer the schema: {error}") from error


def _in_order(schema: JsonSchema) -> JsonSchema:
    """``schema`` with its keys in :data:`_KEY_ORDER`, any others behind them."""
    keys = [key for key in _KEY_ORDER if key in schema] + [
        key for key in schema if key not in _KEY_ORDER
    ]
    return {key: _in_order(schema[key]) if key == "items" else schema[key] for key in keys}


def _field(parameter: inspect.Parameter, words: str | None) -> tuple[Any, Any]:
    """Annotation and default for pydantic. What ``Annotated`` says, in a string or a ``Field``,
    wins over the docstring."""
    annotation = (
        Any
        if parameter.annotation is parameter.empty
        else convert_typed_dicts(parameter.annotation)
    )
    base, notes = _without_notes(annotation)
    spoken = next((note for note in notes if isinstance(note, str)), None)
    own = Field(alias=parameter.name, description=spoken or words)
    return Annotated[
        (base, own, *notes)
    ], ... if parameter.default is parameter.empty else parameter.default


def _without_notes(annotation: object) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    base, *notes = get_args(annotation)
    return base, tuple(notes)


def _is_context(parameter: inspect.Parameter) -> bool:
    if parameter.annotation is parameter.empty:
        return parameter.name == "tool_context"
    return _takes(parameter, ToolExecutionContext)


def _takes(parameter: inspect.Parameter, wanted: type) -> bool:
    """Whether the parameter is annotated as ``wanted``, alone or among others."""
    base, _ = _without_notes(parameter.annotation)
    kinds = get_args(base) if get_origin(base) in (Union, UnionType) else (base,)
    return any(isinstance(kind, type) and issubclass(kind, wanted) for kind in kinds)


def _untitled(schema: JsonSchema) -> JsonSchema:
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
    return schema


def _problem(finding: Any) -> str:
    here = format_path(finding["loc"])
    match finding["type"]:
        case "missing":
            return f"{here} {EMPTY}"
        case "extra_forbidden":
            return f"{here} {UNKNOWN}"
        case _:
            return f"{here} 不符合要求: {finding['msg']}"


def convert_typed_dicts(annotation: Any) -> Any:
    """``annotation`` with each ``typing.TypedDict`` in it rebuilt; everything else as it is."""
    if sys.version_info >= (3, 12):
        return annotation
    if is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _rebuild_typed_dict(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if not parts or origin is Literal:
        return annotation
    made = (
        (convert_typed_dicts(parts[0]), *parts[1:])
        if origin is Annotated
        else tuple(map(convert_typed_dicts, parts))
    )
    if all(new is old for new, old in zip(made, parts, strict=True)):
        return annotation
    if origin in (Union, UnionType):
        return Union[made]  # noqa: UP007 - the members are known at run time only
    if origin is Annotated:
        return Annotated[made]
    return annotation.copy_with(made) if hasattr(annotation, "copy_with") else origin[made]


def _rebuild_typed_dict(kind: Any) -> Any:
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        is_marked = get_origin(hint) in (Required, NotRequired)
        plain = convert_typed_dicts(get_args(hint)[0] if is_marked else hint)
        fields[name] = plain if name in kind.__required_keys__ else NotRequired[plain]
    make: Any = typing_extensions.TypedDict
    made = make(kind.__name__, fields)
    made.__doc__ = kind.__doc__
    return made
