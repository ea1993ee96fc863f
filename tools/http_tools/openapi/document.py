"""A text that should be an OpenAPI 3 document, read within bounds. Pure."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

import yaml
from django.utils.translation import gettext

from tools.schemas.coercion import is_deeper
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
    if len(given.encode("utf-8", "replace")) > MAX_BYTES:
        raise DocumentError(
            gettext("The document is larger than %(limit)d MiB.") % {"limit": MAX_BYTES // 2**20}
        )
    text = given.removeprefix("\ufeff").strip()
    if not text:
        raise DocumentError(gettext("There is no document: the text is empty."))
    if re.match(r"<(!doctype|html|\?xml)", text, re.IGNORECASE):
        raise DocumentError(
            gettext("This is a web page. Wanted is the document itself, in JSON or YAML.")
        )
    document = _from_json(text) if text[0] in "{[" else _from_yaml(text)
    _judge(document)
    return dict(document)


def _from_json(text: str) -> Any:
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:  # also for numbers beyond what Python reads
        raise DocumentError(
            gettext("This cannot be read as JSON: %(error)s") % {"error": error}
        ) from error
    if is_deeper(value, MAX_DEPTH):
        raise _too_deep()
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
    weights: dict[str, int] = {}
    total = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in weights:
                raise DocumentError(
                    gettext("A part of the document (*%(name)s) contains itself.")
                    % {"name": str(event.anchor)[:40]}
                )
            total += weights[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, total))
            total += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                weights[anchor] = total - before
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            if event.anchor:
                weights[event.anchor] = 1
        if total > MAX_NODES:
            raise DocumentError(
                gettext("The document holds more than %(limit)s values.")
                % {"limit": f"{MAX_NODES:,}"}
            )
        if len(open_nodes) > MAX_DEPTH:
            raise _too_deep()


def to_json_types(value: Any) -> Any:
    """``value`` with JSON's types alone: what YAML holds beyond them becomes text."""
    if isinstance(value, dict):
        return {str(make_storable(str(key))): to_json_types(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [to_json_types(item) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return make_storable(str(value))


def _judge(document: Any) -> None:
    """Raise :class:`DocumentError` unless ``document`` is OpenAPI 3 and describes at least one
    address."""
    if not isinstance(document, dict):
        raise DocumentError(
            gettext("This is no OpenAPI document: it is not an object with names and values.")
        )
    if "swagger" in document:
        raise DocumentError(
            gettext(
                "This is a Swagger 2 document. Convert it to OpenAPI 3 first, or ask its provider"
                " for that version."
            )
        )
    version = str(document.get("openapi") or "")
    if not version:
        raise DocumentError(gettext("This is no OpenAPI document: “openapi: 3…” is missing."))
    if not version.startswith("3"):
        raise DocumentError(
            gettext("OpenAPI %(version)s is not known here, only version 3.")
            % {"version": version[:20]}
        )
    if not isinstance(paths := document.get("paths"), dict) or not paths:
        raise DocumentError(
            gettext("The document describes no addresses: “paths” is missing or empty.")
        )


def _too_deep() -> DocumentError:
    return DocumentError(
        gettext("The document is nested more than %(limit)d levels deep.") % {"limit": MAX_DEPTH}
    )
