"""The definitions of the offered tools as the model gets them, cached between messages."""

from collections.abc import Sequence
from typing import Any

from tools.contract import ToolSpec

MOST_KEPT = 4096
"""The most definitions in the cache; a provider that creates new specs for each listing fills
it."""


class DefinitionCache:
    """One definition for each spec, the same object for as long as the spec is: copying fifty takes
    a quarter of a millisecond.

    They are shared and never changed. A client that gets the same object again need not encode it
    again.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[ToolSpec, dict[str, Any]]] = {}
        """By the ids of the specs, which are kept too, so that no other takes over an id."""

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
        """The definition of each spec, in their order."""
        kept = self._kept
        return [known[1] if (known := kept.get(id(spec))) else self._made(spec) for spec in specs]

    def _made(self, spec: ToolSpec) -> dict[str, Any]:
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        definition = spec.llm_definition()
        self._kept[id(spec)] = (spec, definition)
        return definition


def sort_for_model(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """The specs that are meant for the model, the highest priority first, and otherwise in their
    order."""
    if all(spec.annotation is None for spec in specs):
        return list(specs)
    return sorted((spec for spec in specs if spec.is_for_model), key=lambda spec: -spec.priority)
