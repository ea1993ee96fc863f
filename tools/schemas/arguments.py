"""A model's arguments: read, coerced and checked before they reach any tool.

JSON Schema validation by jsonschema, except for patterns, see :mod:`tools.schemas.patterns`.
Readings lose nothing: ``"10"`` where an integer is wanted is 10.

Models write ids as numbers, numbers as text and lists as JSON inside a string. Each is
read as the schema wants it; what has no such reading stays, for the validator to refuse.
Pure: a copy is returned, and the work is bounded by the size of the value.
"""

import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NoReturn
from urllib.parse import unquote

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, UnknownType, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from tools.contract import InvalidArguments, JsonSchema, ToolFailed
from tools.schemas.patterns import (
    PatternRefused,
    TooMuchText,
    compile_pattern,
    gettext_noop,
    limit_matching,
    search_pattern,
)
from tools.schemas.validation_messages import limit_lines, validation_messages

MAX_DEPTH = 32
MAX_BYTES = 2**20
MAX_VALUES = 10_000
"""So many values take about a tenth of a second to check."""
TOO_DEEP = f"参数嵌套过深（最多 {MAX_DEPTH} 层）"
TOO_LARGE = f"参数过大（最多 {MAX_BYTES // 2**20} MiB）"
TOO_MANY = f"参数过多（最多 {MAX_VALUES} 个值）"


def check_text_size(text: str) -> None:
    """Raise :class:`InvalidArguments` for more than ``MAX_BYTES`` of UTF-8."""
    if len(text) * 4 > MAX_BYTES and len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidArguments([TOO_LARGE])


def check_size(value: object) -> None:
    """Raise :class:`InvalidArguments` for more than ``MAX_DEPTH`` lists and objects in each other,
    or ``MAX_VALUES`` values."""
    count = 1
    for depth, level in enumerate(nested_levels(value), 1):
        count += len(level)
        if depth > MAX_DEPTH:
            raise InvalidArguments([TOO_DEEP])
        if count > MAX_VALUES:
            raise InvalidArguments([TOO_MANY])


def is_deeper(value: object, limit: int) -> bool:
    """Whether there are more than ``limit`` lists and objects in each other."""
    return any(depth > limit for depth, _ in enumerate(nested_levels(value), 1))


def nested_levels(value: object) -> Iterator[list[object]]:
    """What ``value`` holds, then what that holds, and so on: one level at a time."""
    level = [value]
    while containers := [item for item in level if isinstance(item, dict | list)]:
        level = [
            item
            for container in containers
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        yield level


def walk_values(value: object) -> Iterator[object]:
    """``value`` and everything in it, at any depth."""
    waiting = [value]
    while waiting:
        yield (item := waiting.pop())
        if isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item


_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")
_BOOLEANS = {"true": True, "false": False}
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def coerce_value(schema: object, value: object, root: Mapping[str, object]) -> Any:
    """``value`` as ``schema`` wants it. ``root`` is the document that ``$ref`` points into."""
    schema = resolve_ref(schema, root)
    if not isinstance(schema, Mapping):
        return value
    value = _as_kind(_kinds(schema), value)
    for part in schema.get("allOf", ()):
        value = coerce_value(part, value, root)
    for branches in (schema.get("anyOf"), schema.get("oneOf")):
        if branches:
            value = _as_branch([resolve_ref(branch, root) for branch in branches], value, root)
    if isinstance(value, dict):
        return _object(schema, value, root)
    if isinstance(value, list):
        first = schema.get("prefixItems", ())
        return [
            coerce_value(first[index] if index < len(first) else schema.get("items"), item, root)
            for index, item in enumerate(value)
        ]
    return value


def resolve_ref(schema: object, root: Mapping[str, object]) -> Any:
    """``schema``, or what its local ``$ref`` points at; None where it points at nothing."""
    for _ in range(16):  # a chain of references that is longer goes in a circle
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            return schema
        try:
            schema = resolve_pointer(reference, root)
        except LookupError:
            return None
    return None


def resolve_pointer(reference: str, root: object) -> object:
    """What stands in ``root`` where ``reference``, ``#/…``, points: as validators find it
    (RFC 6901, 6). Raises LookupError where nothing does."""
    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(root, Mapping):
            root = root[name]
        elif isinstance(root, list) and name.isdecimal() and len(name) < 9:
            root = root[int(name)]
        else:
            raise LookupError(reference)
    return root


def _object(
    schema: Mapping[str, Any], value: dict[str, object], root: Mapping[str, object]
) -> dict[str, object]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    result = {}
    for key, item in value.items():
        wanted = resolve_ref(properties.get(key, schema.get("additionalProperties")), root)
        # "Not given" is what a model means by null where null is no value.
        if (
            item is None
            and key in properties
            and key not in required
            and not _takes_null(wanted, root)
        ):
            continue
        result[key] = coerce_value(wanted, item, root)
    return result


def _takes_null(schema: object, root: Mapping[str, object]) -> bool:
    if not isinstance(schema, Mapping):
        return True
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if branches:
        return any(_takes_null(resolve_ref(branch, root), root) for branch in branches)
    kinds = _kinds(schema)
    return ("null" in kinds) if kinds else None in schema.get("enum", (None,))


def _as_branch(branches: list[Any], value: object, root: Mapping[str, object]) -> Any:
    """``value`` by the one branch that can be meant; as it is where several can."""
    branches = [branch for branch in branches if isinstance(branch, Mapping)]
    fitting = [branch for branch in branches if _may_be(branch, value)]
    if len(fitting) == 1:
        return coerce_value(fitting[0], value, root)
    if fitting:
        return value
    read = _as_kind([kind for branch in branches for kind in _kinds(branch)], value)
    return value if read is value else _as_branch(branches, read, root)


def _may_be(branch: JsonSchema, value: object) -> bool:
    kinds = _kinds(branch)
    if kinds and not any(_is_kind(kind, value) for kind in kinds):
        return False
    if not isinstance(value, dict):
        return True
    fixed = {
        key: sub["const"]
        for key, sub in branch.get("properties", {}).items()
        if isinstance(sub, Mapping) and "const" in sub
    }
    return all(value.get(key) == wanted for key, wanted in fixed.items())


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _is_kind(kind: str, value: object) -> bool:
    return kind in _KINDS and isinstance(value, _KINDS[kind])


def _as_kind(kinds: Iterable[str], value: object) -> object:
    kinds = list(kinds)
    if any(_is_kind(kind, value) for kind in kinds):
        return value
    for kind in kinds:
        try:
            return _READERS[kind](value)
        except (KeyError, ValueError, TypeError, RecursionError):
            continue
    return value


def _integer(value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError(value)


def _number(value: object) -> int | float:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        raise ValueError(value)
    return int(value) if _INTEGER.fullmatch(value.strip()) else float(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, str):
        raise TypeError(value)
    return _BOOLEANS[value.strip().lower()]


def _string(value: object) -> str:
    """A number in full: ids must not become 1.2e+18."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    if not math.isfinite(value):
        raise ValueError(value)
    return format(Decimal(repr(value)), "f")


def _json(wanted: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        decoded = json.loads(value)
        check_size(decoded)
        if not isinstance(decoded, wanted):
            raise TypeError(value)
        return decoded

    return read


_READERS: dict[str, Callable[[Any], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "array": _json(list),
    "object": _json(dict),
}


REFUSED = gettext_noop("The pattern “%(pattern)s” cannot be used: %(reason)s.")
UNEVALUATED = gettext_noop(
    "Beside “patternProperties”, write “additionalProperties” instead of “unevaluatedProperties”."
)

_regex_alone = FormatChecker(formats=())
"""In a schema itself, the patterns are checked."""


@_regex_alone.checks("regex", raises=PatternRefused)
def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or bool(compile_pattern(value))


def build_validator(schema: JsonSchema | bool) -> Validator:
    """What checks values by ``schema``: of draft 2020-12 unless its ``$schema`` says otherwise.

    References beyond it are never fetched. Raises :class:`jsonschema.exceptions.SchemaError`.
    """
    kind = _linear(validator_for(schema, default=Draft202012Validator))
    check_schema(schema, kind)
    # An empty registry: the default one would fetch remote references from anywhere.
    made: Validator = kind(schema, registry=Registry())
    return made


def check_schema(schema: Any, kind: Any = Draft202012Validator) -> None:
    """Raise :class:`jsonschema.exceptions.SchemaError` unless ``schema`` is one, and its patterns
    can be matched."""
    try:
        kind.check_schema(schema, format_checker=_regex_alone)
    except SchemaError as error:
        if isinstance(error.cause, PatternRefused):
            text = REFUSED % {"pattern": str(error.instance)[:200], "reason": error.cause}
            raise SchemaError(
                text, path=error.absolute_path, instance=error.instance, cause=error.cause
            ) from error
        raise
    # jsonschema has no place in which these two could be given another matcher.
    text = json.dumps(schema)
    if '"patternProperties":' in text and '"unevaluatedProperties":' in text:
        raise SchemaError(UNEVALUATED)


@functools.cache
def _linear(kind: Any) -> Any:
    """``kind`` with every keyword that matches patterns done by RE2."""
    ours = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional(kind.VALIDATORS.get("additionalProperties")),
    }
    known = {name: check for name, check in ours.items() if name in kind.VALIDATORS}
    return extend(kind, known)  # type: ignore[no-untyped-call]


def _pattern(
    validator: Validator, pattern: str, value: Any, schema: object
) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not search_pattern(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, parts: JsonSchema, value: Any, schema: object
) -> Iterator[ValidationError]:
    if not validator.is_type(value, "object"):
        return
    for pattern, part in parts.items():
        for name in [name for name in value if search_pattern(pattern, name)]:
            yield from validator.descend(value[name], part, path=name, schema_path=pattern)


def _additional(usual: Any) -> Any:
    """``additionalProperties``, given the names that a pattern matches as if each were declared."""

    def check(
        validator: Validator, rest: object, value: Any, schema: Any
    ) -> Iterator[ValidationError]:
        if not validator.is_type(value, "object"):
            return
        patterns = schema.get("patternProperties") or {}
        matched = {name for name in value if any(search_pattern(text, name) for text in patterns)}
        plain = {key: part for key, part in schema.items() if key != "patternProperties"}
        properties = {**schema.get("properties", {}), **dict.fromkeys(matched, True)}
        yield from usual(validator, rest, value, {**plain, "properties": properties})

    return check


UNUSABLE_SCHEMA = (SchemaError, UnknownType, Unresolvable, PatternRefused, RecursionError)
"""What :func:`schema_messages` raises when the schema itself is at fault."""
TOO_LONG = "文字太长，无法检查是否符合要求的格式"


def parse_arguments(raw: str | dict[str, object] | None) -> dict[str, object]:
    """The object that a model's argument text stands for. Nothing at all, or null, is ``{}``.

    Raises :class:`InvalidArguments` for text that is not JSON (``NaN`` and ``Infinity``
    are none) and for JSON that is not an object.
    """
    value: object = raw
    for _ in range(2):  # some models encode the object twice
        if not isinstance(value, str):
            break
        check_text_size(value)
        try:
            value = parse_strict_json(value) if value.strip() else None
        except RecursionError:
            raise InvalidArguments([TOO_DEEP]) from None
        except ValueError as error:
            raise InvalidArguments([f"参数不是合法的 JSON: {error}"]) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidArguments(["参数应为 JSON 对象"])
    return value


def parse_strict_json(text: str) -> Any:
    """What ``text`` says as JSON. Raises ValueError also for NaN, Infinity and numbers out of
    range, which no database takes."""
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text[:20]} is out of range")


def check_arguments(schema: JsonSchema | None, arguments: Mapping[str, object]) -> dict[str, Any]:
    """A copy of ``arguments``, coerced to ``schema`` and valid by it. Half a surrogate pair in it
    becomes ``?``.

    ``schema`` is of draft 2020-12 unless its ``$schema`` says otherwise; references
    beyond it are never fetched. Without a schema only the size is checked.

    Raises :class:`InvalidArguments` with every fault, and :class:`ToolFailed` when the
    schema itself cannot be used.
    """
    given = dict(arguments)
    check_size(given)
    text = json.dumps(given, ensure_ascii=False, default=str)
    check_text_size(text)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair can be neither stored nor sent
        given = json.loads(text.encode("utf-8", "replace"))
    if schema is None:
        return given
    try:
        validator = _validator(json.dumps(schema, ensure_ascii=False))
        result = coerce_value(schema, given, schema)
        check_size(result)
        problems = _messages(validator, result)
    except UNUSABLE_SCHEMA as error:
        raise ToolFailed("工具的参数定义有误，无法调用") from error
    if problems:
        raise InvalidArguments(problems, result)
    return dict(result)


def schema_messages(schema: JsonSchema, value: object) -> list[str]:
    """What is wrong with ``value`` by ``schema``, one line each. Raises one of
    ``UNUSABLE_SCHEMA``."""
    return _messages(_validator(json.dumps(schema, ensure_ascii=False)), value)


def _messages(validator: Validator, value: Any) -> list[str]:
    try:
        with limit_matching():
            found = (validation_messages(finding) for finding in validator.iter_errors(value))
            return limit_lines(line for lines in found for line in lines)
    except TooMuchText:
        return [TOO_LONG]


@functools.lru_cache(maxsize=512)
def _validator(schema_text: str) -> Validator:
    """Kept by content: a provider may build its schemas again for each listing."""
    return build_validator(json.loads(schema_text))
