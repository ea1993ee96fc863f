"""A model's arguments: read, coerced and checked before they reach any tool."""

import functools
import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from jsonschema.exceptions import SchemaError, UnknownType
from jsonschema.protocols import Validator
from referencing.exceptions import Unresolvable

from tools.contract import JsonSchema
from tools.errors import InvalidArguments, ToolFailed
from tools.schemas.coercion import TOO_DEEP, check_size, check_text_size, coerce_value
from tools.schemas.json_schema import build_validator
from tools.schemas.patterns import PatternRefused, TooMuchText, limit_matching
from tools.schemas.validation_messages import limit_lines, validation_messages

UNUSABLE_SCHEMA = (SchemaError, UnknownType, Unresolvable, PatternRefused, RecursionError)
"""What :func:`schema_messages` raises when the schema itself is at fault."""
TOO_LONG = "文字太长，无法检查是否符合要求的格式"


def parse_arguments(raw: str | dict[str, Any] | None) -> dict[str, Any]:
    """The object that a model's argument text stands for. Nothing at all, or null, is ``{}``.

    Raises :class:`InvalidArguments` for text that is not JSON (``NaN`` and ``Infinity``
    are none) and for JSON that is not an object.
    """
    value: Any = raw
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


def check_arguments(schema: JsonSchema | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
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


def schema_messages(schema: JsonSchema, value: Any) -> list[str]:
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
