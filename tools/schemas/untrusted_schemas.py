"""Schemas that a server declares, made harmless before arguments are checked against them. Pure.

The check is plain Python on the event loop. A pattern may never finish with thirty letters, and ten
definitions that each name the next one twice are checked a thousand times. So patterns are moved
into the description, and schemas that grow like this are refused.
"""

import json
from typing import Any

from django.utils.translation import gettext as _

from tools.contract import JsonSchema
from tools.schemas.arguments import UNUSABLE_SCHEMA, resolve_pointer, schema_messages
from tools.text.fences import neutralize_json
from tools.text.untrusted import clean_untrusted

MAX_BYTES = 64 * 1024
MAX_DEPTH = 24
MAX_STEPS = 5_000
"""Parts of a schema, those behind references counted again at each reference."""
DESCRIPTION_LIMIT = 600
_WORDS = {"description": DESCRIPTION_LIMIT, "title": 200, "$comment": 0}
_BY_NAME = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_DROPPED = frozenset(
    {
        "$schema",
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "patternProperties",
        "$comment",
        "format",
    }
)
_DATA = frozenset({"default", "const", "enum", "examples", "example"})


class SchemaRefused(ValueError):  # noqa: N818 - it says what happened
    """The schema cannot be used; the message says why, for the operator."""


def clean_schema(schema: object) -> JsonSchema:
    """A copy of ``schema`` that can be shown to a model and checked against. Raises
    :class:`SchemaRefused`."""
    if not isinstance(schema, dict):
        raise SchemaRefused(_("Its schema is no object."))
    if schema.get("type", "object") != "object":
        raise SchemaRefused(_("Its schema is of another type than object."))
    if len(json.dumps(schema)) > MAX_BYTES:
        raise SchemaRefused(_("Its schema has more than %s KiB.") % (MAX_BYTES // 1024))
    tamed = dict(_tamed(schema, 0))
    _refuse_growth(tamed)
    try:
        schema_messages(tamed, {})
    except UNUSABLE_SCHEMA as error:
        words = clean_untrusted(str(error).partition("\n")[0], 200)
        raise SchemaRefused(_("Its schema cannot be used: %s") % words) from error
    return {"type": "object", "properties": {}, **tamed}


def _tamed(value: object, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise SchemaRefused(_("Its schema has more than %s levels.") % MAX_DEPTH)
    if isinstance(value, list):
        return [_tamed(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    tamed = {
        key: _entry(key, item, depth + 1) for key, item in value.items() if key not in _DROPPED
    }
    if isinstance(pattern := tamed.pop("pattern", None), str):
        said = f"{tamed.get('description', '')} (pattern: {clean_untrusted(pattern, 200)})"
        tamed["description"] = said.strip()
    return tamed


def _entry(key: str, value: object, depth: int) -> object:
    if key in _WORDS:
        return clean_untrusted(value, _WORDS[key])
    if key in _DATA:  # a call must repeat it exactly, so nothing in it can be replaced
        if neutralize_json(value) != value:
            raise SchemaRefused(_("One of its values imitates a mark of this program."))
        return value
    if key in _BY_NAME and isinstance(value, dict):
        if any(not name or clean_untrusted(name, 200) != name for name in value):
            raise SchemaRefused(_("One of its arguments has a name that cannot be shown."))
        return {name: _tamed(item, depth + 1) for name, item in value.items()}
    return _tamed(value, depth)


def _refuse_growth(schema: JsonSchema) -> None:
    """Raise for what takes too many steps with its references followed; a definition inside itself
    is entered once."""
    waiting: list[tuple[object, frozenset[str]]] = [(schema, frozenset())]
    for _number in range(MAX_STEPS):
        if not waiting:
            return
        part, inside = waiting.pop()
        if isinstance(part, list):
            waiting += [(item, inside) for item in part]
        elif isinstance(part, dict):
            waiting += [(item, inside) for key, item in part.items() if key not in _DATA]
            if isinstance(name := part.get("$ref"), str) and name not in inside:
                waiting.append((_referred(schema, name), inside | {name}))
    raise SchemaRefused(_("Its schema is too complicated."))


def _referred(root: JsonSchema, reference: str) -> object:
    if not reference.startswith("#"):
        raise SchemaRefused(_("Its schema refers to something outside of it."))
    try:
        return resolve_pointer(reference, root)
    except LookupError:
        return None
