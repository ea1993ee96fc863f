"""What the model is told of the tools it is offered, kept ready between messages."""

import marshal
from collections.abc import Sequence
from typing import Any

from tools.contract import ToolSpec

MOST_KEPT = 64
"""Different offers that are kept: a chat kind, a set of rows."""


class Definitions:
    """Definitions of lists of specs.

    Copying the schemas of fifty tools takes a quarter of a millisecond; reading them back
    takes a fifth of that. Kept for as long as the specs are the same objects.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], tuple[list[ToolSpec], bytes]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
        """The definition of each spec the model is meant to see, the highest priority first; the caller may change them."""
        key = tuple(map(id, specs))
        kept = self._kept.get(key)
        if kept is None:
            definitions = [spec.llm_definition() for spec in offered(specs)]
            try:
                kept = (list(specs), marshal.dumps(definitions))  # the specs too, so that no other takes over an id
            except ValueError:  # a schema that is not plain JSON
                return definitions
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = kept
        return list(marshal.loads(kept[1]))  # noqa: S302 - written by this process a moment ago


def offered(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """The specs that are meant for the model, the highest priority first, and otherwise in their order."""
    return sorted((spec for spec in specs if spec.is_for_model), key=lambda spec: -spec.priority)
