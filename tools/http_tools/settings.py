"""One HTTP tool with the settings of its row, frozen.

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

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from tools.http_tools.templates import parse_template, template_secrets
from tools.schemas.arguments import parse_strict_json
from tools.schemas.coercion import walk_values

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


def declared_parameters(settings: HttpToolSettings) -> dict[str, Any]:
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


def parse_json_or_none(text: str) -> Any:
    """The JSON that ``text`` is; None where it is none."""
    try:
        return parse_strict_json(text)
    except (ValueError, RecursionError):
        return None


def _texts(value: Any) -> Iterator[str]:
    return (item for item in walk_values(value) if isinstance(item, str))
