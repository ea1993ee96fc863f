"""A tool as the operator configured it: its declaration combined with its row."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tools.contract import JsonSchema, ToolProvider, ToolSpec
from tools.models.choices import AllowedCallers, ToolVisibility
from tools.registry.catalogue import declaration_json, declared_settings
from tools.registry.declaration_review import (
    covers_fingerprint,
    declaration_fingerprint,
    needs_look,
    tool_source,
)
from tools.registry.settings import ToolSettings

EXTERNAL_PROVIDERS = frozenset({"mcp", "plugin", "http"})
"""Types of providers whose tools are deferred when there are many: a server may bring any
number."""
MOST_KEPT = 4096
"""The most cached offers; a server that keeps inventing names fills the cache."""
_DEFERRED = ToolVisibility.DEFERRED.value


@dataclass(frozen=True, slots=True)
class ResolvedTool:
    """``declared`` by ``provider``; ``spec`` is what the model gets; without a ``row`` its own
    settings apply.

    ``is_deferrable``: the model may get only its name. ``is_unlooked``: its declaration was not
    reviewed, so only owners may call it, even if the row allows more.
    """

    provider: ToolProvider
    declared: ToolSpec
    row: ToolSettings | None
    spec: ToolSpec
    settings: ToolSettings
    is_from_outside: bool = False
    is_unlooked: bool = False
    is_deferrable: bool = False

    @property
    def is_always_deferred(self) -> bool:
        """Whether that is so however few tools there are."""
        return self.settings.visibility == _DEFERRED


class ToolResolver:
    """Makes offers, and keeps them for as long as declaration and row are the same objects.

    ``trusting``: no tool counts as new, for a user who may review every tool.
    """

    def __init__(self, *, trusting: bool = False) -> None:
        self._made: dict[tuple[str, str], ResolvedTool] = {}
        self._trusting = trusting
        self._fingerprints: dict[tuple[str, str], tuple[ToolSpec, str]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def of(
        self, provider: ToolProvider, declared: ToolSpec, row: ToolSettings | None
    ) -> ResolvedTool:
        key = (provider.provider_name, declared.name)
        made = self._made.get(key)
        if (
            made is not None
            and made.declared is declared
            and made.row is row
            and made.provider is provider
        ):
            return made
        if len(self._made) >= MOST_KEPT:
            self._made.clear()
            self._fingerprints.clear()
        settings = row or declared_settings(declared)
        unlooked = not self._trusting and self._is_unlooked(key, provider, declared, settings)
        if unlooked:
            settings = replace(settings, allowed=AllowedCallers.OWNERS.value)
        outside = not EXTERNAL_PROVIDERS.isdisjoint(
            (provider.provider_type, declared.provider_type)
        )
        may_wait = (
            (outside or settings.visibility == _DEFERRED)
            and declared.is_for_model
            and not settings.pinned
        )
        made = ResolvedTool(
            provider,
            declared,
            row,
            apply_row_texts(declared, settings),
            settings,
            outside,
            unlooked,
            may_wait,
        )
        self._made[key] = made
        return made

    def _is_unlooked(
        self,
        key: tuple[str, str],
        provider: ToolProvider,
        declared: ToolSpec,
        settings: ToolSettings,
    ) -> bool:
        if not needs_look(provider.provider_type, declared.provider_type):
            return False
        known, mark = self._fingerprints.get(key, (None, ""))
        if known is not declared:
            mark = declaration_fingerprint(
                declaration_json(declared), tool_source(declared, provider.provider_name)
            )
            self._fingerprints[key] = declared, mark
        return not covers_fingerprint(settings.looked_at, mark)


def apply_row_texts(spec: ToolSpec, settings: ToolSettings) -> ToolSpec:
    """``spec`` with the texts of the row, if any. A mock answers with text, even if the tool
    declares another output."""
    description = settings.description.strip() or spec.description
    schema = _with_descriptions(spec.parameters_schema, settings.parameter_descriptions)
    output = None if settings.mock_enabled else spec.output_schema
    if (
        description == spec.description
        and schema is spec.parameters_schema
        and output is spec.output_schema
    ):
        return spec
    return replace(spec, description=description, parameters_schema=schema, output_schema=output)


def _with_descriptions(
    schema: JsonSchema | None, descriptions: Mapping[str, Any]
) -> JsonSchema | None:
    """``schema`` with these descriptions of its properties. Unknown names, which a row can keep,
    are left out."""
    properties = schema.get("properties") if schema else None
    if schema is None or not isinstance(properties, dict):
        return schema
    said = {
        name: properties[name] | {"description": text.strip()}
        for name, text in descriptions.items()
        if isinstance(text, str) and text.strip() and isinstance(properties.get(name), dict)
    }
    return {**schema, "properties": properties | said} if said else schema
