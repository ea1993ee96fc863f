"""The types used in declarations of tools. Names and fields are those of MaiBot's SDK."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ToolParamType(StrEnum):
    """What a parameter takes."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "number"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class ToolParameterInfo:
    """One parameter of a tool. ``items_schema`` is that of an array's items, ``properties`` are
    those of an object."""

    name: str
    param_type: ToolParamType | str = ToolParamType.STRING
    description: str = ""
    required: bool = True
    enum_values: Sequence[Any] | None = None
    items_schema: Mapping[str, Any] | None = None
    properties: Mapping[str, Any] | None = None
    required_properties: Sequence[str] | None = None
    additional_properties: bool | Mapping[str, Any] | None = None
    default: Any = None


class ActivationType(StrEnum):
    """When an old Action was offered. Kept on record; the model decides alone."""

    ALWAYS = "always"
    KEYWORD = "keyword"
    RANDOM = "random"
    LLM_JUDGE = "llm_judge"
    NEVER = "never"


class ChatMode(StrEnum):
    """The chat modes of old Actions. Kept on record."""

    NORMAL = "normal"
    FOCUS = "focus"
    ALL = "all"
