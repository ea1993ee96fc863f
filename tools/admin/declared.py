"""What a tool says of itself, made readable: the declaration that its row keeps. Pure."""

from dataclasses import dataclass
from typing import Any

from tools.text.readable import drop_surrogates, escape_invisible_chars, format_readable

ICON_SOURCES = ("https://", "data:image/")
#: Signs that are left as they are: the space of Chinese texts, and what makes a sign a coloured
#: one.
UNESCAPED_CHARS = "\n\t\u3000\ufe0f"


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """One argument of a tool; ``type_label`` is its type in JSON Schema's words, or the values it
    may have."""

    name: str
    kind: str
    description: str
    is_required: bool
    default: str = ""


def readable_declaration(declaration: dict[str, Any]) -> dict[str, Any]:
    """The parts of a row's ``declaration`` as a page shows them; whatever a foreign tool declares
    can be shown."""
    schema, output = declaration.get("parameters_schema"), declaration.get("output_schema")
    annotation = declaration.get("annotation") or {}
    return {
        "title": declared_title(declaration),
        "description": _shown(declaration.get("description") or ""),
        "icons": [
            icon["src"]
            for icon in declaration.get("icons") or ()
            if str(icon.get("src")).startswith(ICON_SOURCES)
        ],
        "parameters": [describe_parameter(parameter) for parameter in list_parameters(schema)],
        "parameters_json": _shown(format_readable(schema)) if schema else "",
        "output_json": _shown(format_readable(output)) if output else "",
        "annotation_json": _shown(format_readable(said))
        if (said := {k: v for k, v in annotation.items() if v not in (None, "", [], {})})
        else "",
        "is_long_running": bool(declaration.get("is_long_running")),
        "requires_approval": declaration.get("requires_approval"),
    }


def declared_title(declaration: dict[str, Any]) -> str:
    """What the tool is called by people; "" where it does not say."""
    return _shown(
        declaration.get("title") or (declaration.get("annotation") or {}).get("title") or ""
    )


def list_parameters(schema: Any) -> list[DeclaredParameter]:
    """The arguments that a parameters schema names, in its order."""
    required = schema.get("required") if isinstance(schema, dict) else None
    needed = required if isinstance(required, list) else ()
    return [
        DeclaredParameter(
            name,
            type_label(part),
            str(part.get("description") or ""),
            is_required=name in needed,
            default=format_readable(part["default"], limit=200)
            if part.get("default") is not None
            else "",
        )
        for name, part in argument_schemas(schema).items()
    ]


def describe_parameter(said: DeclaredParameter) -> DeclaredParameter:
    """An argument for people to read."""
    return DeclaredParameter(
        _shown(said.name),
        _shown(said.kind),
        _shown(said.description),
        said.is_required,
        _shown(said.default),
    )


def _shown(text: Any) -> str:
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
