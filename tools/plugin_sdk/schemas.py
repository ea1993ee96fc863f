"""The ways in which plugins write down parameters, as JSON Schema. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from tools.contract import JsonSchema
from tools.errors import InvalidDeclaration
from tools.plugin_sdk.types import ToolParameterInfo

_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
"""Python's words for JSON's; old plugins use both."""

GivenParameters = Sequence[ToolParameterInfo] | Mapping[str, Any]


def parameters_schema(parameters: GivenParameters) -> JsonSchema:
    """The schema that ``parameters`` are: one already, a schema for each name, or a list of
    :class:`ToolParameterInfo`.

    Raises :class:`InvalidDeclaration` for anything else.
    """
    if isinstance(parameters, Mapping):
        if isinstance(parameters.get("type"), str) or isinstance(
            parameters.get("properties"), Mapping
        ):
            return {"type": "object", "properties": {}, **parameters}
        return _of_properties(parameters)
    infos = list(parameters)
    if not all(isinstance(info, ToolParameterInfo) for info in infos):
        raise InvalidDeclaration(
            "parameters is neither a JSON schema nor a list of ToolParameterInfo"
        )
    return {
        "type": "object",
        "properties": {info.name: _property(info) for info in infos},
        "required": [info.name for info in infos if info.required],
        "additionalProperties": False,
    }


def texts_schema(parameters: Mapping[str, Any]) -> JsonSchema:
    """The schema of an old Action's parameters: texts all of them, and none must be given."""
    return {
        "type": "object",
        "properties": {
            str(name): {"type": "string", "description": str(words)}
            for name, words in parameters.items()
        },
    }


def drop_properties(schema: JsonSchema, names: frozenset[str]) -> JsonSchema:
    """``schema`` without the properties of these ``names``."""
    properties = schema.get("properties", {})
    if not names & properties.keys():
        return schema
    left = {name: each for name, each in properties.items() if name not in names}
    return {
        **schema,
        "properties": left,
        "required": [name for name in schema.get("required", []) if name not in names],
    }


def _of_properties(properties: Mapping[str, Any]) -> JsonSchema:
    """A schema for each name; whether one is required may stand inside it, as old plugins have
    it."""
    if not all(isinstance(each, Mapping) for each in properties.values()):
        raise InvalidDeclaration("parameters is neither a JSON schema nor a schema for each name")
    return {
        "type": "object",
        "properties": {
            name: {
                key: _kind(value) if key == "type" else value
                for key, value in each.items()
                if key != "required" or value not in (True, False)
            }
            for name, each in properties.items()
        },
        "required": [name for name, each in properties.items() if each.get("required") is True],
    }


def _property(info: ToolParameterInfo) -> JsonSchema:
    said = {
        "type": _kind(str(info.param_type)),
        "description": info.description or None,
        "enum": list(info.enum_values) if info.enum_values else None,
        "items": info.items_schema,
        "properties": info.properties,
        "required": list(info.required_properties) if info.required_properties else None,
        "additionalProperties": info.additional_properties,
        "default": info.default,
    }
    return {key: value for key, value in said.items() if value is not None}


def _kind(word: Any) -> Any:
    return _TYPES.get(word, word) if isinstance(word, str) else word
