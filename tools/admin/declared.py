"""What a tool says of itself: made readable, shown for review with what has changed, and as a form
for its arguments."""

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from django import forms
from django.db.models import F, Q
from django.forms import BoundField
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _

from tools.admin.fields import IndentedJSONField
from tools.admin.record_pages import choice_filter, render_badge
from tools.models import ToolConfig
from tools.registry.catalogue import covers_fingerprint, judged_parts
from tools.text.readable import (
    drop_surrogates,
    escape_invisible_chars,
    escape_invisible_json,
    format_readable,
)

ICON_SOURCES = ("https://", "data:image/")
#: Signs that are left as they are: the space of Chinese texts, and what makes a sign a coloured
#: one.
UNESCAPED_CHARS = "\n\t\u3000\ufe0f"


def readable_declaration(declaration: dict[str, Any]) -> dict[str, Any]:
    """The parts of a row's ``declaration`` as a page shows them; whatever a foreign tool declares
    can be shown."""
    schema, output = declaration.get("parameters_schema"), declaration.get("output_schema")
    annotation = declaration.get("annotation") or {}
    return {
        "title": declared_title(declaration),
        "description": shown_text(declaration.get("description") or ""),
        "icons": [
            icon["src"]
            for icon in declaration.get("icons") or ()
            if str(icon.get("src")).startswith(ICON_SOURCES)
        ],
        "parameters": list_parameters(schema),
        "parameters_json": shown_text(format_readable(schema)) if schema else "",
        "output_json": shown_text(format_readable(output)) if output else "",
        "annotation_json": shown_text(format_readable(said))
        if (said := {k: v for k, v in annotation.items() if v not in (None, "", [], {})})
        else "",
        "is_long_running": bool(declaration.get("is_long_running")),
        "requires_approval": declaration.get("requires_approval"),
    }


def declared_title(declaration: dict[str, Any]) -> str:
    """What the tool is called by people; "" where it does not say."""
    return shown_text(
        declaration.get("title") or (declaration.get("annotation") or {}).get("title") or ""
    )


def list_parameters(schema: object) -> list[dict[str, Any]]:
    """The arguments that a parameters schema names, in its order, for people to read; ``key`` is
    the name of one as it is, ``kind`` its type in JSON Schema's words, or the values it may
    have."""
    required = schema.get("required") if isinstance(schema, dict) else None
    needed = required if isinstance(required, list) else ()
    return [
        {
            "key": name,
            "name": shown_text(name),
            "kind": shown_text(type_label(part)),
            "description": shown_text(part.get("description") or ""),
            "is_required": name in needed,
            "default": ""
            if part.get("default") is None
            else shown_text(format_readable(part["default"], limit=200)),
        }
        for name, part in argument_schemas(schema).items()
    ]


def shown_text(text: object) -> str:
    """What a tool says, with nothing in it that is not seen."""
    return escape_invisible_chars(drop_surrogates(str(text)), keep=UNESCAPED_CHARS)


def argument_schemas(schema: Any) -> dict[str, dict[str, Any]]:
    """The schema of each argument by name, a local reference followed; {} where there is none to
    read."""
    found = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(found, dict):
        return {}
    return {
        str(name): _followed(part, schema) if isinstance(part, dict) else {}
        for name, part in found.items()
    }


def strip_null(part: dict[str, Any]) -> dict[str, Any]:
    """``X | None`` as ``X``; any other schema as it is."""
    for word in ("anyOf", "oneOf"):
        options = part.get(word)
        if isinstance(options, list):
            real = [
                option
                for option in options
                if not (isinstance(option, dict) and option.get("type") == "null")
            ]
            return (
                {**part, word: None, **real[0]}
                if len(real) == 1 and isinstance(real[0], dict)
                else part
            )
    types = part.get("type")
    real = [entry for entry in types if entry != "null"] if isinstance(types, list) else []
    return {**part, "type": real[0]} if len(real) == 1 else part


def type_label(part: dict[str, Any]) -> str:
    values = part.get("enum")
    if isinstance(values, list):
        return " | ".join(format_readable(value, limit=40) for value in values[:20])
    types = part.get("type")
    if types is None and (options := part.get("anyOf") or part.get("oneOf")):
        return " | ".join(type_label(option) for option in options if isinstance(option, dict))
    return " | ".join(map(str, types)) if isinstance(types, list) else str(types or "any")


def _followed(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """``part`` with the definition that it, or its one alternative to null, points to."""
    ref = str(strip_null(part).get("$ref") or "").removeprefix("#/$defs/")
    definitions = schema.get("$defs")
    target = definitions.get(ref) if isinstance(definitions, dict) else None
    return (
        {**target, **part, "type": target.get("type"), "anyOf": None}
        if isinstance(target, dict)
        else part
    )


#: The most tools on one page; nobody reviews more.
MOST_AT_ONCE = 50
#: Lines of a declaration that are compared; what is longer is shown as it was and as it is.
MOST_COMPARED = 500
#: Tools that need a review.
LOOK_NEEDED = ~Q(fingerprint="") & ~Q(looked_at=F("fingerprint"))
NEVER_LOOKED_AT = LOOK_NEEDED & Q(looked_at="")


def look_state(config: ToolConfig) -> str:
    """``new``, ``changed``, or "" when no review is needed."""
    if not config.fingerprint or covers_fingerprint(config.looked_at, config.fingerprint):
        return ""
    return "changed" if config.looked_at else "new"


def look_badge(config: ToolConfig) -> str:
    """The state as a label, "" for none."""
    words = {"new": _("new"), "changed": _("has changed")}.get(look_state(config))
    return render_badge("waiting", words) if words else SafeString("")


#: What a list of tools can be narrowed to: those that are new or have changed since a review.
LOOKS = {
    "open": (_("new or changed"), LOOK_NEEDED),
    "new": (_("new"), NEVER_LOOKED_AT),
    "changed": (_("has changed"), LOOK_NEEDED & ~Q(looked_at="")),
}
LookFilter = choice_filter(
    _("looked at"),
    "look",
    lambda request: [(name, words) for name, (words, _condition) in LOOKS.items()],
    lambda rows, value: rows.filter(LOOKS[value][1]) if value in LOOKS else rows,
)


def compare_declaration(config: ToolConfig) -> dict[str, Any]:
    """What is declared, for the page of a review: ``lines``, each with ``-`` or ``+`` before it
    where it is gone or new, and nothing in it unseen; and what is sent back, ``mark``: which tool,
    and what of it was shown."""
    now = list(declaration_lines(config.declaration))
    before = list(declaration_lines(config.looked_declaration or {}))
    return {
        "config": config,
        "state": look_state(config),
        "badge": look_badge(config),
        "mark": f"{config.pk}:{config.fingerprint}",
        "lines": list(_compared(before, now)) if before else [(" ", line) for line in now],
    }


def _compared(before: list[str], now: list[str]) -> Iterator[tuple[str, str]]:
    edits: Any = [("replace", 0, len(before), 0, len(now))]  # of what is too long to compare
    if max(len(before), len(now)) <= MOST_COMPARED:
        edits = SequenceMatcher(None, before, now).get_opcodes()
    for kind, start, end, first, last in edits:
        if kind == "equal":
            yield from ((" ", line) for line in now[first:last])
        else:
            yield from (("-", line) for line in before[start:end])
            yield from (("+", line) for line in now[first:last])


def declaration_lines(declaration: dict[str, Any]) -> Iterator[str]:
    """Everything that is judged. A line of a text stands behind a bar, so that it cannot look like
    one of ours."""
    labels = {
        "title": gettext("title"),
        "description": gettext("description"),
        "parameters_schema": gettext("schema of the arguments"),
        "output_schema": gettext("schema of the result"),
        "annotation": gettext("annotation"),
        "requires_approval": gettext("asks an owner"),
        "is_long_running": gettext("long-running"),
    }
    for key, value in judged_parts(declaration).items():
        text = (
            escape_invisible_chars(value, keep="\n")
            if isinstance(value, str)
            else escape_invisible_json(value)
        )
        yield f"{labels.get(key, key)}:"
        yield from (f"  | {line}" for line in text.split("\n"))


#: The one field of a tool that does not say what it takes: all arguments as one JSON object.
WHOLE_VALUE = ""


class ArgumentForm(forms.Form):
    """A field for each argument. What is left empty is not given.

    The form reads values and judges none: that is the registry's, whose words are to be seen.
    """

    def __init__(self, schema: Any, data: Any = None) -> None:
        super().__init__(data, prefix="argument")
        self._parameters = (
            list_parameters(schema)
            if schema
            else [{"key": WHOLE_VALUE, "name": "", "kind": "object"}]
        )
        parts = argument_schemas(schema)
        self.fields.update(
            {
                one["key"]: build_argument_field(parts.get(one["key"], {}))
                for one in self._parameters
            }
        )

    def rows(self) -> list[tuple[BoundField, dict[str, Any]]]:
        return [(self[one["key"]], one) for one in self._parameters]

    def arguments(self) -> Any:
        """The arguments of a valid form, as a model would give them."""
        given = {name: value for name, value in self.cleaned_data.items() if value is not None}
        return given.get(WHOLE_VALUE, {}) if WHOLE_VALUE in self.fields else given


def build_argument_field(part: dict[str, Any]) -> forms.Field:
    """The input for one argument: what is neither a plain value nor one of a few is written as
    JSON."""
    part = strip_null(part)
    values = part.get("enum")
    if isinstance(values, list):
        texts = [
            (json.dumps(value), value if isinstance(value, str) else json.dumps(value))
            for value in values
        ]
        return _choice(
            [(value, escape_invisible_chars(drop_surrogates(text))) for value, text in texts]
        )
    match part.get("type"):
        case "string":
            text_area = forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"})
            return forms.CharField(required=False, strip=False, empty_value=None, widget=text_area)
        case "integer":
            return forms.IntegerField(required=False)
        case "number":
            return forms.FloatField(required=False, widget=forms.NumberInput(attrs={"step": "any"}))
        case "boolean":
            return _choice([("true", gettext("yes")), ("false", gettext("no"))])
        case _:
            return IndentedJSONField(required=False)


def _choice(choices: list[tuple[str, str]]) -> forms.TypedChoiceField:
    return forms.TypedChoiceField(
        choices=[("", "-"), *choices], coerce=json.loads, empty_value=None, required=False
    )
