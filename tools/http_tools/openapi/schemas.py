"""Schemas of an OpenAPI document as JSON Schema that a model can be given. Pure."""

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext

from tools.schemas.coercion import resolve_pointer
from tools.text.untrusted import clean_line

MAX_STEPS = 20


class BrokenReferenceError(Exception):
    """What a reference names is not there, or not in the document. ``str(error)`` is for the
    operator."""


class ReferenceResolver:
    """The places of one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def follow(self, part: Any) -> Any:
        """``part``, or what it refers to at the end of all references. Raises
        :class:`BrokenReferenceError`."""
        for _ in range(MAX_STEPS):
            if not (isinstance(part, dict) and "$ref" in part):
                return part
            part = self.resolve(part["$ref"])
        raise BrokenReferenceError(gettext("A reference leads back to itself."))

    def resolve(self, reference: Any) -> Any:
        """What stands where ``reference`` points. Raises :class:`BrokenReferenceError`."""
        shown = {"reference": str(reference)[:200]}
        if not isinstance(reference, str) or not reference.startswith("#"):
            words = gettext("“%(reference)s” lies outside of the document.")
            raise BrokenReferenceError(words % shown)
        try:
            return resolve_pointer(reference, self._document)
        except LookupError as error:
            words = gettext("“%(reference)s” is not in the document.")
            raise BrokenReferenceError(words % shown) from error


MAX_PARTS = 400
"""Schemas within the parameters of one tool; the model reads all of them before every answer."""
MAX_DEPTH = 24
MAX_CHOICES = 200
DESCRIPTION_LIMIT = 400
TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_KEPT: dict[str, Callable[[Any], bool]] = {
    "format": lambda value: isinstance(value, str) and bool(value),
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _number,
    "exclusiveMaximum": _number,
    "minLength": _count,
    "maxLength": _count,
    "minItems": _count,
    "maxItems": _count,
}
"""Keywords that are kept where their value makes sense.

``pattern`` is not one of them: arguments are checked on the event loop, and an untrusted expression
can block it without end. The service itself rejects what it does not accept.
"""


class SchemaReader:
    """Reads the schemas of one tool. ``notes`` lists, translated, what could not be kept."""

    def __init__(self, references: ReferenceResolver) -> None:
        self.notes: list[str] = []
        self._references = references
        self._left = MAX_PARTS

    def read(self, schema: Any, trail: tuple[str, ...] = ()) -> dict[str, Any]:
        """``schema`` without references; {} is any value, and stands where nothing better can be
        said."""
        if not isinstance(schema, dict):
            return {}
        self._left -= 1
        if self._left < 0 or len(trail) > MAX_DEPTH:
            return self._cut(
                gettext("The parameters are large: parts of them are left open, as any value.")
            )
        if "$ref" in schema:
            return self._referred(schema, trail)
        return self._keywords(schema, (*trail, ""))

    def _cut(self, note: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
        if note not in self.notes:
            self.notes.append(note)
        kind = (schema or {}).get("type")
        return {"type": kind} if isinstance(kind, str) and kind in TYPES else {}

    def _referred(self, schema: dict[str, Any], trail: tuple[str, ...]) -> dict[str, Any]:
        reference = schema["$ref"]
        try:
            target = self._references.resolve(reference)
        except BrokenReferenceError as error:
            return self._cut(str(error))
        siblings = {name: value for name, value in schema.items() if name != "$ref"}
        if reference in trail:
            words = gettext("“%(reference)s” contains itself: it is left open from there on.") % {
                "reference": reference[:200]
            }
            return self._cut(words, target if isinstance(target, dict) else None)
        read = self.read(target, (*trail, reference))
        return read | self._keywords(siblings, (*trail, reference)) if siblings else read

    def _keywords(self, schema: dict[str, Any], trail: tuple[str, ...]) -> dict[str, Any]:
        read: dict[str, Any] = _kind(schema)
        if words := short_description(schema):
            read["description"] = words
        read |= {
            name: schema[name] for name, is_sound in _KEPT.items() if is_sound(schema.get(name))
        }
        for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if schema.get(flag) is True and bound in read:  # as OpenAPI 3.0 says it
                read[flag] = read.pop(bound)
        if isinstance(choices := schema.get("enum"), list) and 0 < len(choices) <= MAX_CHOICES:
            read["enum"] = list({repr(choice): choice for choice in choices}.values())
        if "const" in schema:
            read["enum"] = [schema["const"]]
        if schema.get("default") is not None:
            read["default"] = schema["default"]
        read |= self._inside(schema, trail)
        return self._combined(schema, read, trail)

    def _inside(self, schema: dict[str, Any], trail: tuple[str, ...]) -> dict[str, Any]:
        inside: dict[str, Any] = {}
        for word in ("items", "additionalProperties"):
            if isinstance(schema.get(word), dict):
                inside[word] = self.read(schema[word], trail)
        if isinstance(schema.get("additionalProperties"), bool):
            inside["additionalProperties"] = schema["additionalProperties"]
        if isinstance(found := schema.get("properties"), dict):
            kept = {name: part for name, part in found.items() if not self._is_read_only(part)}
            inside["properties"] = {name: self.read(part, trail) for name, part in kept.items()}
        if isinstance(required := schema.get("required"), list):
            names = (name for name in required if isinstance(name, str))
            inside["required"] = list(dict.fromkeys(names))
        return inside

    def _is_read_only(self, part: Any) -> bool:
        """Whether ``part`` is in answers only, and not to be sent."""
        try:
            target = self._references.follow(part)
        except BrokenReferenceError:
            return False
        return isinstance(target, dict) and target.get("readOnly") is True

    def _combined(
        self, schema: dict[str, Any], read: dict[str, Any], trail: tuple[str, ...]
    ) -> dict[str, Any]:
        for word in ("anyOf", "oneOf"):
            if options := [self.read(option, trail) for option in _schemas(schema.get(word))]:
                read["anyOf"] = (
                    options  # as models know it; the service judges whether more than one fits
                )
        for part in _schemas(schema.get("allOf")):
            read = merge_schemas(self.read(part, trail), read)
        if "required" in read and "properties" in read:
            read["required"] = [name for name in read["required"] if name in read["properties"]]
        return {name: value for name, value in read.items() if name != "required" or value}


def merge_schemas(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """What is to be held to by both: properties of both, and otherwise the words of ``second``
    where both have some."""
    both = first | second
    if "properties" in first and "properties" in second:
        both["properties"] = first["properties"] | second["properties"]
    if needed := list(dict.fromkeys([*first.get("required", ()), *second.get("required", ())])):
        both["required"] = needed
    return both


def short_description(part: dict[str, Any]) -> str:
    """What a parameter or schema says of itself, cut to what a model should have to read."""
    found = [
        text
        for word in ("description", "title")
        if isinstance(text := part.get(word), str) and text.strip()
    ]
    return clean_line(found[0], DESCRIPTION_LIMIT) if found else ""


def _kind(schema: dict[str, Any]) -> dict[str, Any]:
    given = schema.get("type")
    kinds = [
        kind
        for kind in (given if isinstance(given, list) else [given])
        if isinstance(kind, str) and kind in TYPES
    ]
    if not kinds and isinstance(schema.get("properties"), dict):
        kinds = ["object"]
    if kinds and schema.get("nullable") is True and "null" not in kinds:
        kinds.append("null")
    kinds = list(dict.fromkeys(kinds))
    return {"type": kinds if len(kinds) > 1 else kinds[0]} if kinds else {}


def _schemas(options: Any) -> list[dict[str, Any]]:
    return (
        [option for option in options if isinstance(option, dict)]
        if isinstance(options, list)
        else []
    )
