"""A text that should be an OpenAPI 3 document, read within bounds; its references, and its schemas
as JSON Schema that a model can be given. Pure."""

import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import yaml
from django.utils.translation import gettext

from tools.schemas.arguments import is_deeper, resolve_pointer
from tools.text.storable import make_storable
from tools.text.untrusted import clean_line

MAX_BYTES = 8 * 2**20
MAX_NODES = 300_000
"""Values of a YAML document, those behind aliases counted wherever they are named: a few seconds'
work."""
MAX_DEPTH = 100


class DocumentError(Exception):
    """No tools can be created from the text. ``str(fault)`` is the reason, translated, for the
    operator."""


class _Loader(yaml.CSafeLoader):
    """Plain values as YAML 1.2 reads them, which OpenAPI asks for: ``no``, ``012`` and
    ``2024-01-01`` are texts."""

    yaml_implicit_resolvers: dict[str, object] = {}  # noqa: RUF012 - as the base class declares it


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", "-+0123456789"),
    ("float", r"[-+]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}", "-+0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first)
    )


def read_document(given: bytes | str) -> dict[str, Any]:
    """The OpenAPI 3 document that ``given`` holds as JSON or YAML, with JSON's values alone. Raises
    :class:`DocumentError`."""
    if isinstance(given, bytes):
        encoding = "utf-16" if given[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
        try:
            given = given.decode(encoding)
        except UnicodeDecodeError as error:
            raise DocumentError(gettext("The file is no text in UTF-8.")) from error
    large = gettext("The document is larger than %(limit)d MiB.") % {"limit": MAX_BYTES // 2**20}
    _refuse(large, when=len(given.encode("utf-8", "replace")) > MAX_BYTES)
    text = given.removeprefix("\ufeff").strip()
    _refuse(gettext("There is no document: the text is empty."), when=not text)
    _refuse(
        gettext("This is a web page. Wanted is the document itself, in JSON or YAML."),
        when=bool(re.match(r"<(!doctype|html|\?xml)", text, re.IGNORECASE)),
    )
    document = _from_json(text) if text[0] in "{[" else _from_yaml(text)
    _judge(document)
    return dict(document)


def _refuse(reason: str, *, when: bool) -> None:
    if when:
        raise DocumentError(reason)


def _from_json(text: str) -> Any:
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise DocumentError(_too_deep()) from error
    except ValueError as error:  # also for numbers beyond what Python reads
        raise DocumentError(
            gettext("This cannot be read as JSON: %(error)s") % {"error": error}
        ) from error
    _refuse(_too_deep(), when=is_deeper(value, MAX_DEPTH))
    return to_json_types(value)


def _from_yaml(text: str) -> Any:
    try:
        _refuse_excess(yaml.parse(text, Loader=_Loader))
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, TypeError) as error:
        words = " ".join(str(error).split())[:300]
        raise DocumentError(
            gettext("This can be read neither as JSON nor as YAML: %(error)s") % {"error": words}
        ) from error
    return to_json_types(value)


def _refuse_excess(events: Iterable[yaml.Event]) -> None:
    """Judge a text before anything is built of it: libyaml's composer recurses on the C stack, and
    aliases multiply."""
    open_nodes: list[tuple[str | None, int]] = []
    weights: dict[str | None, int] = {}
    total = 0
    many = gettext("The document holds more than %(limit)s values.") % {"limit": f"{MAX_NODES:,}"}
    itself, deep = gettext("A part of the document (*%(name)s) contains itself."), _too_deep()
    for event in events:
        match event:
            case yaml.AliasEvent(anchor=name):
                _refuse(itself % {"name": str(name)[:40]}, when=name not in weights)
                total += weights[name]
            case yaml.CollectionStartEvent():
                open_nodes.append((event.anchor, total))
                total += 1
            case yaml.CollectionEndEvent():
                name, before = open_nodes.pop()
                weights[name] = total - before
            case yaml.ScalarEvent():
                total += 1
                weights[event.anchor] = 1
        _refuse(many, when=total > MAX_NODES)
        _refuse(deep, when=len(open_nodes) > MAX_DEPTH)


def to_json_types(value: object) -> Any:
    """``value`` with JSON's types alone: what YAML holds beyond them becomes text."""
    if isinstance(value, dict):
        return {str(make_storable(str(key))): to_json_types(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [to_json_types(item) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return make_storable(str(value))


def _judge(document: object) -> None:
    """Raise :class:`DocumentError` unless ``document`` is OpenAPI 3 and describes at least one
    address."""
    known = document if isinstance(document, dict) else {}
    version, paths = str(known.get("openapi") or ""), known.get("paths")
    _refuse(
        gettext("This is no OpenAPI document: it is not an object with names and values."),
        when=not isinstance(document, dict),
    )
    _refuse(
        gettext(
            "This is a Swagger 2 document. Convert it to OpenAPI 3 first, or ask its provider"
            " for that version."
        ),
        when="swagger" in known,
    )
    _refuse(gettext("This is no OpenAPI document: “openapi: 3…” is missing."), when=not version)
    words = gettext("OpenAPI %(version)s is not known here, only version 3.")
    _refuse(words % {"version": version[:20]}, when=not version.startswith("3"))
    _refuse(
        gettext("The document describes no addresses: “paths” is missing or empty."),
        when=not isinstance(paths, dict) or not paths,
    )


def _too_deep() -> str:
    words = gettext("The document is nested more than %(limit)d levels deep.")
    return words % {"limit": MAX_DEPTH}


# --- References and schemas --------------------------------------------------------

MAX_STEPS = 20
MAX_PARTS = 400
"""Schemas within the parameters of one tool; the model reads all of them before every answer."""
SCHEMA_DEPTH = 24
MAX_CHOICES = 200
DESCRIPTION_LIMIT = 400
TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})

Json = dict[str, Any]


class BrokenReferenceError(Exception):
    """What a reference names is not there, or not in the document. ``str(error)`` is for the
    operator."""


def resolve(document: Json, reference: object) -> object:
    """What stands in ``document`` where ``reference`` points. Raises
    :class:`BrokenReferenceError`."""
    shown = {"reference": str(reference)[:200]}
    if not isinstance(reference, str) or not reference.startswith("#"):
        words = gettext("“%(reference)s” lies outside of the document.")
        raise BrokenReferenceError(words % shown)
    try:
        return resolve_pointer(reference, document)
    except LookupError as error:
        words = gettext("“%(reference)s” is not in the document.")
        raise BrokenReferenceError(words % shown) from error


def follow(document: Json, part: object) -> Json:
    """``part``, or what it refers to at the end of all references; {} where that is no object.
    Raises :class:`BrokenReferenceError`."""
    for _ in range(MAX_STEPS):
        if not isinstance(part, dict) or "$ref" not in part:
            return part if isinstance(part, dict) else {}
        part = resolve(document, part["$ref"])
    raise BrokenReferenceError(gettext("A reference leads back to itself."))


def objects(given: object) -> list[Json]:
    """The objects of a list; none where ``given`` is no list."""
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def entries(given: object) -> Json:
    """``given`` where it is an object, else an empty one."""
    return given if isinstance(given, dict) else {}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_KEPT: dict[str, Callable[[object], bool]] = {
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

``pattern`` is not one of them: what a service means by one is not what every checker takes it for.
The service itself rejects what it does not accept.
"""


class SchemaReader:
    """Reads the schemas of one tool. ``notes`` lists, translated, what could not be kept."""

    def __init__(self, document: Json) -> None:
        self.notes: list[str] = []
        self._document = document
        self._left = MAX_PARTS

    def read(self, schema: object, trail: tuple[str, ...] = ()) -> Json:
        """``schema`` without references; {} is any value, and stands where nothing better can be
        said."""
        if not isinstance(schema, dict):
            return {}
        self._left -= 1
        if self._left < 0 or len(trail) > SCHEMA_DEPTH:
            return self._cut(
                gettext("The parameters are large: parts of them are left open, as any value.")
            )
        if "$ref" not in schema:
            return self._keywords(schema, (*trail, ""))
        reference = schema["$ref"]
        try:
            target = resolve(self._document, reference)
        except BrokenReferenceError as error:
            return self._cut(str(error))
        if reference in trail:
            words = gettext("“%(reference)s” contains itself: it is left open from there on.")
            return self._cut(words % {"reference": reference[:200]}, entries(target).get("type"))
        trail = (*trail, reference)
        siblings = {name: value for name, value in schema.items() if name != "$ref"}
        return self.read(target, trail) | (self._keywords(siblings, trail) if siblings else {})

    def _cut(self, note: str, kind: object = None) -> Json:
        if note not in self.notes:
            self.notes.append(note)
        return {"type": kind} if isinstance(kind, str) and kind in TYPES else {}

    def _keywords(self, schema: Json, trail: tuple[str, ...]) -> Json:
        read = _kind(schema)
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
        return self._inside(schema, read, trail)

    def _inside(self, schema: Json, read: Json, trail: tuple[str, ...]) -> Json:
        """``read`` with the schemas that stand in ``schema``."""
        for word in ("items", "additionalProperties"):
            if isinstance(schema.get(word), dict):
                read[word] = self.read(schema[word], trail)
        if isinstance(schema.get("additionalProperties"), bool):
            read["additionalProperties"] = schema["additionalProperties"]
        if isinstance(found := schema.get("properties"), dict):
            kept = {name: part for name, part in found.items() if not self._is_read_only(part)}
            read["properties"] = {name: self.read(part, trail) for name, part in kept.items()}
        if isinstance(required := schema.get("required"), list):
            read["required"] = list(
                dict.fromkeys(name for name in required if isinstance(name, str))
            )
        for word in ("anyOf", "oneOf"):
            # The service judges whether more than one fits: models know the first word.
            if options := [self.read(option, trail) for option in objects(schema.get(word))]:
                read["anyOf"] = options
        for part in objects(schema.get("allOf")):
            read = _merged(self.read(part, trail), read)
        if "properties" in read:
            read["required"] = [n for n in read.get("required", ()) if n in read["properties"]]
        if not read.get("required", True):
            del read["required"]
        return read

    def _is_read_only(self, part: object) -> bool:
        """Whether ``part`` is in answers only, and not to be sent."""
        try:
            return follow(self._document, part).get("readOnly") is True
        except BrokenReferenceError:
            return False


def _merged(first: Json, second: Json) -> Json:
    """What is to be held to by both: properties of both, and otherwise the words of ``second``
    where both have some."""
    both = first | second
    if "properties" in first and "properties" in second:
        both["properties"] = first["properties"] | second["properties"]
    needed = dict.fromkeys([*first.get("required", ()), *second.get("required", ())])
    return both | ({"required": list(needed)} if needed else {})


def short_description(part: Json) -> str:
    """What a parameter or schema says of itself, cut to what a model should have to read."""
    said = (part.get(word) for word in ("description", "title"))
    found = (text for text in said if isinstance(text, str) and text.strip())
    return clean_line(next(found, ""), DESCRIPTION_LIMIT)


def _kind(schema: Json) -> Json:
    given = schema.get("type")
    named = given if isinstance(given, list) else [given]
    kinds = [kind for kind in named if isinstance(kind, str) and kind in TYPES]
    if not kinds and isinstance(schema.get("properties"), dict):
        kinds = ["object"]
    if kinds and schema.get("nullable") is True:
        kinds.append("null")
    kinds = list(dict.fromkeys(kinds))
    return {"type": kinds if len(kinds) > 1 else kinds[0]} if kinds else {}
