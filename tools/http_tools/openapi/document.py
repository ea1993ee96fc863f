"""A text that should be an OpenAPI 3 document, read within bounds. Pure."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

import yaml
from django.utils.translation import gettext

from tools.schemas.arguments import is_deeper
from tools.text.storable import make_storable

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

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - as the base class declares it


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
