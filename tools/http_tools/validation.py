"""What is wrong with an HTTP tool's row: translated lines for the person who wrote it, by field.
Pure.

What the JSON fields of a row hold:

* ``query``, and ``body`` of the kind ``form`` (there as JSON text): an object from names to
  templates; a number, true or false stands for its text, and a list for several entries of
  that name. An entry that is ``{name}`` and nothing else is repeated for each item of a list.
* ``headers``: an object from names to templates.
* ``body`` of the kind ``json``: JSON whose texts are templates. A text that is ``{name}``
  and nothing else becomes the argument itself, whatever its type; so it is
  ``{"count": "{count}"}`` for a number too.
* ``parameters_schema``: a JSON Schema of type ``object``; ``{}`` is a tool without arguments.

An entry, or a text in JSON, that names arguments is left out when all of them are missing; one that
is missing among others is "".
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.utils.translation import gettext
from jsonschema.exceptions import SchemaError

from tools.contract import TOOL_NAME, InvalidArguments
from tools.fetch.allow_list import AllowList
from tools.fetch.request import METHODS, check_headers, check_url
from tools.http_tools.templates import (
    PARAMETER_NAME,
    check_template,
    content_type,
    has_placeholders,
    is_dot_segment,
    literal_text,
    parse_template,
    template_arguments,
    template_secrets,
    url_template,
)
from tools.schemas.arguments import (
    REFUSED,
    UNEVALUATED,
    check_schema,
    check_size,
    parse_strict_json,
    resolve_pointer,
    walk_values,
)
from tools.schemas.patterns import PatternRefused
from tools.secrets.hosts import SecretHosts, format_origin
from tools.secrets.masked import secret_refusal_message

PROVIDER = "http"
"""The name and the type of the provider."""
GRACE_SECONDS = 5
"""What the time limit of the whole call first has beyond that of the request, so that this one is
the first to say so."""


@dataclass(frozen=True, slots=True)
class HttpToolSettings:
    """The fields that make a request and its answer. Two are equal when the tool is the same."""

    pk: int | None
    name: str
    enabled: bool
    description: str
    method: str
    url: str
    body_kind: str
    answer_kind: str
    answer_path: str
    timeout_seconds: int
    max_kib: int
    cache_seconds: int
    query: Any
    headers: Any
    body: str
    parameters_schema: Any


FIELDS = tuple(field.name for field in fields(HttpToolSettings))


def declared_parameters(settings: HttpToolSettings) -> dict[str, object]:
    """The declared arguments by name; empty where the schema names none."""
    schema = settings.parameters_schema
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def required_parameters(settings: HttpToolSettings) -> list[str]:
    """The arguments that every call has to give."""
    schema = settings.parameters_schema
    required = schema.get("required") if isinstance(schema, dict) else None
    return required if isinstance(required, list) else []


def row_templates(settings: HttpToolSettings) -> Iterator[tuple[str, str]]:
    """The field and the text of each template; nothing of a field that cannot be read."""
    yield "url", settings.url
    for field in ("query", "headers"):
        yield from ((field, text) for text in _texts(getattr(settings, field)))
    if settings.body_kind == "text":
        yield "body", settings.body
    elif settings.body_kind in ("json", "form"):
        yield from (("body", text) for text in _texts(parse_json_or_none(settings.body)))


def secret_names(settings: HttpToolSettings) -> frozenset[str]:
    """The names of all secrets in the templates of a row, whether there are such secrets or not."""
    return frozenset(
        name
        for _, text in row_templates(settings)
        for name in template_secrets(parse_template(text))
    )


def parse_json_or_none(text: str) -> object:
    """The JSON that ``text`` is; None where it is none."""
    try:
        return parse_strict_json(text)
    except (ValueError, RecursionError):
        return None


def _texts(value: object) -> Iterator[str]:
    return (item for item in walk_values(value) if isinstance(item, str))


# What keeps a JSON Schema from declaring a tool's arguments, for the person who wrote it. Pure.

BYTES = 64 * 1024
"""The schema is part of every request to the model."""
PROPERTIES = 100


def check_parameters_schema(schema: object) -> list[str]:
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
        pointer = "/".join(map(str, error.absolute_path)) or "/"
        if isinstance(error.cause, PatternRefused):
            return [f"{pointer}: {describe_refused_pattern(str(error.instance), error.cause)}"]
        if error.message == UNEVALUATED:
            return [f"{pointer}: {gettext(UNEVALUATED)}"]
        return [
            gettext("This is no JSON Schema, at %(pointer)s: %(fault)s")
            % {"pointer": pointer, "fault": error.message[:200]}
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


def _check_references(schema: dict[str, object]) -> Iterator[str]:
    """References that lead nowhere: each would fail every call."""
    for part in walk_values(schema):
        if isinstance(part, dict) and isinstance(reference := part.get("$ref"), str):
            try:
                resolve_pointer(reference, schema)
            except LookupError:
                words = gettext("The reference “%(reference)s” leads nowhere in this schema.")
                yield words % {"reference": reference[:200]}


def has_ascii_classes(schema: object) -> bool:
    """Whether one of its patterns has a class in which people may expect more than it has: ``\\w``
    or ``\\b``."""
    parts = [part for part in walk_values(schema) if isinstance(part, dict)]
    patterns = [text for part in parts for text in part.get("patternProperties") or ()]
    patterns += [part["pattern"] for part in parts if isinstance(part.get("pattern"), str)]
    return any("\\w" in pattern or "\\b" in pattern for pattern in patterns)


BODY_CHARS = 100_000
ENTRIES = 100
"""Entries of a query, of headers or of a form."""
_AUTHORITY = re.compile(r"https?://[^/?#\\]*", re.IGNORECASE)

MessagesByField = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class ValidationContext:
    """What a row is checked against: names of ``secrets`` (None: any may be) and the ``hosts`` they
    may be sent to (None: not judged), what downloads may reach (None: not judged),
    and the provider of another tool with the row's name."""

    secrets: Collection[str] | None = None
    hosts: Mapping[str, SecretHosts] | None = None
    allow: AllowList | None = None
    taken_by: str = ""


def check_http_tool(settings: HttpToolSettings, context: ValidationContext) -> MessagesByField:
    """Every problem, by the field it is in; empty for a row that can be used. Fields without
    problems are left out."""
    problems: MessagesByField = {
        "name": [],
        "method": [],
        "url": _url_problems(settings.url, context.allow),
        "query": _table_problems(settings.query),
        "headers": _header_problems(settings.headers),
        "body": _body_problems(settings),
        "body_kind": _kind_problems(settings),
        "answer_path": [],
        "parameters_schema": check_parameters_schema(settings.parameters_schema),
    }
    if not TOOL_NAME.fullmatch(settings.name):
        problems["name"].append(gettext("Letters, digits, _ and - only, at most 64."))
    elif context.taken_by:
        words = gettext("There is a tool of this name already, from %(provider)s.")
        problems["name"].append(words % {"provider": context.taken_by})
    if settings.method not in METHODS:
        words = gettext("This is not one of %(methods)s.")
        problems["method"].append(words % {"methods": ", ".join(METHODS)})
    if settings.answer_kind == "jsonpath":
        from tools.http_tools.jsonpath import compile_jsonpath

        try:
            compile_jsonpath(settings.answer_path)
        except ValueError as error:
            words = gettext("This JSONPath cannot be used: %(fault)s")
            problems["answer_path"].append(words % {"fault": error})
    arguments = None if problems["parameters_schema"] else list(declared_parameters(settings))
    for field, text in row_templates(settings):
        problems[field] += check_template(text, arguments, context.secrets)
    if not problems["url"]:
        problems["url"] += check_hosts(settings, context.hosts)
    return {field: list(dict.fromkeys(lines)) for field, lines in problems.items() if lines}


def tool_warnings(settings: HttpToolSettings) -> Iterator[str]:
    """What may be meant, but probably is not: a translated line each."""
    used = {
        name
        for _, text in row_templates(settings)
        for name in template_arguments(parse_template(text))
    }
    path = parse_template(settings.url.partition("?")[0])
    for name in declared_parameters(settings):
        if name not in used:
            yield gettext("The argument “%(name)s” is used nowhere.") % {"name": name}
    for name in dict.fromkeys(template_arguments(path)):
        if name not in required_parameters(settings):
            words = gettext("“%(name)s” stands in the path: require it, or calls without it fail.")
            yield words % {"name": name}
    for name in dict.fromkeys(template_secrets(path)):
        words = gettext(
            "The secret “%(name)s” stands in the path, which servers write into their logs."
        )
        yield words % {"name": name}
    if settings.url.lower().startswith("http:") and secret_names(settings):
        yield gettext("The URL begins with http: its secrets travel where others can read them.")
    if has_ascii_classes(settings.parameters_schema):
        yield gettext(
            "In patterns, \\w, \\d, \\s and \\b know only letters, digits and spaces of ASCII. For"
            " every"
            " language write [\\p{L}\\p{N}_] instead of \\w, and \\p{Han} for Chinese characters."
        )
    if not settings.description.strip():
        yield gettext("Without a description the model does not know what the tool is for.")


def check_hosts(settings: HttpToolSettings, hosts: Mapping[str, SecretHosts] | None) -> list[str]:
    """A line for each secret of ``settings`` that may not be sent to its URL; a secret that is not
    there is not judged."""
    if hosts is None:
        return []
    url = _sample(settings.url)
    return [
        secret_refusal_message(name, format_origin(url), hosts[name])
        for name in sorted(secret_names(settings) & hosts.keys())
        if not hosts[name].permits(url)
    ]


def _url_problems(url: str, allow: AllowList | None) -> list[str]:
    authority = _AUTHORITY.match(url.strip())
    if authority and has_placeholders(authority[0]):
        return [
            gettext("Nothing in braces can stand before the path: the host is always the same.")
        ]
    if problems := check_url(_sample(url), allow):
        return problems
    template = url_template(url)
    if template is None:
        return [
            gettext(
                "The URL cannot have a part that begins with “#”, nor braces or “\\” in its host."
            )
        ]
    problems = []
    if any(is_dot_segment(literal_text(segment)) for segment in template.segments):
        problems.append(gettext("The path cannot have parts that are “.” or “..”."))
    if any(has_placeholders(entry.partition("=")[0]) for entry in url.partition("?")[2].split("&")):
        problems.append(gettext("Braces can stand in values, not in names."))
    return problems


def _table_problems(table: object) -> list[str]:
    if not isinstance(table, dict):
        return [gettext("A JSON object is wanted: names and their values.")]
    if len(table) > ENTRIES:
        return [gettext("At most %(count)d entries.") % {"count": ENTRIES}]
    problems = []
    for name, value in table.items():
        shown = {"name": name[:64]}
        if not name or has_placeholders(name):
            words = gettext(
                "“%(name)s” cannot be a name: braces can stand in values, not in names."
            )
            problems.append(words % shown)
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str | int | float | bool) for item in values):
            words = gettext(
                "The value of “%(name)s” must be text, a number, true, false, or a list of these."
            )
            problems.append(words % shown)
    return problems


def _header_problems(headers: Any) -> list[str]:
    if problems := _table_problems(headers):
        return problems
    if wrong := [name for name, value in headers.items() if not isinstance(value, str)]:
        return [
            gettext("The value of “%(name)s” must be text.") % {"name": name[:64]} for name in wrong
        ]
    if len({name.lower() for name in headers}) < len(headers):
        return [gettext("A header can be there once only, in whatever letters.")]
    return check_headers({name: _sample(value) for name, value in headers.items()})


def _sample(text: str) -> str:
    return literal_text(parse_template(text), "x")


def _kind_problems(settings: HttpToolSettings) -> list[str]:
    if settings.body_kind == "none":
        return (
            [gettext("Choose what kind of body this is, or empty it.")]
            if settings.body.strip()
            else []
        )
    if settings.method == "GET":
        return [
            gettext("A GET request has no body: choose another method, or put this into the query.")
        ]
    said = content_type(settings.headers) if isinstance(settings.headers, Mapping) else ""
    if settings.body_kind == "text" and ("json" in said or "urlencoded" in said):
        return [
            gettext(
                "Choose JSON or form fields: in a text, arguments stand as they are and could be"
                " taken for more than values."
            )
        ]
    return []


def _body_problems(settings: HttpToolSettings) -> list[str]:
    if len(settings.body) > BODY_CHARS:
        return [gettext("At most %(count)d characters.") % {"count": BODY_CHARS}]
    if settings.body_kind not in ("json", "form"):
        return []
    value = parse_json_or_none(settings.body)
    if value is None and settings.body.strip() != "null":
        return [
            gettext(
                "This is no JSON. An argument stands in quotes, also where it is a number:"
                ' "{count}".'
            )
        ]
    if settings.body_kind == "form":
        return _table_problems(value)
    try:
        check_size(value)
    except InvalidArguments:
        return [gettext("This is too large, or nested too deep.")]
    return []
