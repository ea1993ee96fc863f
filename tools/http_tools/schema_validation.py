"""What keeps a JSON Schema from declaring a tool's arguments, for the person who wrote it. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext
from jsonschema.exceptions import SchemaError

from tools.errors import InvalidArguments
from tools.http_tools.templates import PARAMETER_NAME
from tools.schemas.coercion import check_size, resolve_pointer, walk_values
from tools.schemas.json_schema import REFUSED, UNEVALUATED, check_schema
from tools.schemas.patterns import PatternRefused

BYTES = 64 * 1024
"""The schema is part of every request to the model."""
PROPERTIES = 100


def check_parameters_schema(schema: Any) -> list[str]:
    """A translated line each; ``{}`` declares a tool without arguments."""
    if not isinstance(schema, dict):
        return [gettext("A JSON Schema is wanted: an object with the type “object”.")]
    if not schema:
        return []
    if schema.get("type") != "object":
        return [gettext("The type must be “object”: arguments are given by name.")]
    try:
        check_size(schema)
        is_small = len(json.dumps(schema, ensure_ascii=False).encode()) <= BYTES
    except (InvalidArguments, ValueError, RecursionError):
        is_small = False
    if not is_small:
        return [gettext("The schema is too large, or nested too deep.")]
    try:
        check_schema(schema)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path)) or "/"
        if isinstance(error.cause, PatternRefused):
            return [f"{place}: {describe_refused_pattern(str(error.instance), error.cause)}"]
        if error.message == UNEVALUATED:
            return [f"{place}: {gettext(UNEVALUATED)}"]
        return [
            gettext("This is no JSON Schema, at %(place)s: %(fault)s")
            % {"place": place, "fault": error.message[:200]}
        ]
    except RecursionError:
        return [gettext("The schema is nested too deep.")]
    return list(dict.fromkeys([*_check_names(schema), *_check_references(schema)]))


def describe_refused_pattern(pattern: str, refused: PatternRefused) -> str:
    """Why ``pattern`` cannot be used, translated."""
    return gettext(REFUSED) % {
        "pattern": pattern[:200],
        "reason": gettext(refused.text) % refused.values,
    }


def _check_names(schema: dict[str, Any]) -> Iterator[str]:
    names = list(schema.get("properties", {}))
    if len(names) > PROPERTIES:
        yield gettext("At most %(count)d arguments.") % {"count": PROPERTIES}
    for name in names:
        if not PARAMETER_NAME.fullmatch(name):
            yield gettext(
                "“%(name)s” cannot name an argument: letters without accents, digits, “_”, “-” and"
                " “.” only, at most 64."
            ) % {"name": name[:64]}
    for name in schema.get("required", ()):
        if name not in names:
            yield gettext("“%(name)s” is required, but not declared.") % {"name": name[:64]}


def _check_references(schema: dict[str, Any]) -> Iterator[str]:
    """References that lead nowhere: each would fail every call."""
    for part in walk_values(schema):
        if isinstance(part, dict) and isinstance(reference := part.get("$ref"), str):
            try:
                resolve_pointer(reference, schema)
            except LookupError:
                words = gettext("The reference “%(reference)s” leads nowhere in this schema.")
                yield words % {"reference": reference[:200]}


def has_ascii_classes(schema: Any) -> bool:
    """Whether one of its patterns has a class in which people may expect more than it has: ``\\w``
    or ``\\b``."""
    parts = [part for part in walk_values(schema) if isinstance(part, dict)]
    patterns = [text for part in parts for text in part.get("patternProperties") or ()]
    patterns += [part["pattern"] for part in parts if isinstance(part.get("pattern"), str)]
    return any("\\w" in pattern or "\\b" in pattern for pattern in patterns)
