"""JSON Schema validation by jsonschema, except for patterns, see :mod:`tools.schemas.patterns`."""

import functools
import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry

from tools.schemas.patterns import PatternRefused, compile_pattern, gettext_noop, search_pattern

REFUSED = gettext_noop("The pattern “%(pattern)s” cannot be used: %(reason)s.")
UNEVALUATED = gettext_noop(
    "Beside “patternProperties”, write “additionalProperties” instead of “unevaluatedProperties”."
)

_regex_alone = FormatChecker(formats=())
"""In a schema itself, the patterns are checked."""


@_regex_alone.checks("regex", raises=PatternRefused)
def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or bool(compile_pattern(value))


def build_validator(schema: Any) -> Validator:
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


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not search_pattern(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, parts: dict[str, Any], value: Any, schema: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(value, "object"):
        return
    for pattern, part in parts.items():
        for name in [name for name in value if search_pattern(pattern, name)]:
            yield from validator.descend(value[name], part, path=name, schema_path=pattern)


def _additional(usual: Any) -> Any:
    """``additionalProperties``, given the names that a pattern matches as if each were declared."""

    def check(validator: Any, rest: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        if not validator.is_type(value, "object"):
            return
        patterns = schema.get("patternProperties") or {}
        matched = {name for name in value if any(search_pattern(text, name) for text in patterns)}
        plain = {key: part for key, part in schema.items() if key != "patternProperties"}
        properties = {**schema.get("properties", {}), **dict.fromkeys(matched, True)}
        yield from usual(validator, rest, value, {**plain, "properties": properties})

    return check
