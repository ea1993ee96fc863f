"""A tool as the operator wants it: a declaration and a row made one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tools.catalogue import own_settings
from tools.choices import Visibility
from tools.configs import ToolSettings
from tools.contract import JsonSchema, ToolProvider, ToolSpec

OUTSIDE = frozenset({"mcp", "plugin", "http"})
"""Types of providers whose tools are deferred when there are many: a server brings as many as it likes."""
_DEFERRED = Visibility.DEFERRED.value


@dataclass(frozen=True, slots=True)
class Offer:
    """``declared`` by ``provider``; ``spec`` is what the model is told; without a ``row`` its own settings count.

    ``is_deferrable``: the model may be told its name alone.
    """

    provider: ToolProvider
    declared: ToolSpec
    row: ToolSettings | None
    spec: ToolSpec
    settings: ToolSettings
    is_from_outside: bool = False
    is_deferrable: bool = False

    @property
    def is_always_deferred(self) -> bool:
        """Whether that is so however few tools there are."""
        return self.settings.visibility == _DEFERRED


class Offers:
    """Makes offers, and keeps them for as long as declaration and row are the same objects."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Offer] = {}

    def of(self, provider: ToolProvider, declared: ToolSpec, row: ToolSettings | None) -> Offer:
        key = (provider.provider_name, declared.name)
        made = self._made.get(key)
        if made is not None and made.declared is declared and made.row is row and made.provider is provider:
            return made
        settings = row or own_settings(declared)
        outside = not OUTSIDE.isdisjoint((provider.provider_type, declared.provider_type))
        may_wait = (outside or settings.visibility == _DEFERRED) and declared.is_for_model and not settings.pinned
        made = Offer(provider, declared, row, described(declared, settings), settings, outside, may_wait)
        self._made[key] = made
        return made


def described(spec: ToolSpec, settings: ToolSettings) -> ToolSpec:
    """``spec`` with the words of the row, where it has any. A mock answers in words, whatever the tool promises."""
    description = settings.description.strip() or spec.description
    schema = _with_descriptions(spec.parameters_schema, settings.parameter_descriptions)
    output = None if settings.mock_enabled else spec.output_schema
    if description == spec.description and schema is spec.parameters_schema and output is spec.output_schema:
        return spec
    return replace(spec, description=description, parameters_schema=schema, output_schema=output)


def _with_descriptions(schema: JsonSchema | None, descriptions: Mapping[str, Any]) -> JsonSchema | None:
    """``schema`` with these words for its properties. Unknown names, which a row can keep, are left out."""
    properties = schema.get("properties") if schema else None
    if schema is None or not isinstance(properties, dict):
        return schema
    said = {
        name: properties[name] | {"description": text.strip()}
        for name, text in descriptions.items()
        if isinstance(text, str) and text.strip() and isinstance(properties.get(name), dict)
    }
    return {**schema, "properties": properties | said} if said else schema
