"""The models that are offered with a preset: what they can do, and what they cost.

They stand in ``preset_models.json``, with the day on which they were looked up and the pages where;
an operator may name any other model, and has the last word on prices.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any


class Thinks(StrEnum):
    """Whether a model thinks before it answers."""

    NO = "no"
    WHEN_ASKED = "when_asked"
    ALWAYS = "always"
    """Thinking can be made shorter, but not switched off."""


@dataclass(frozen=True)
class Price:
    """What a million tokens cost. ``cached``: of input that was read from the provider's cache."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    currency: str = "CNY"


@dataclass(frozen=True)
class PresetModel:
    """A model by the name its provider calls it. ``window``: tokens; ``price``: None if unknown.

    One that transcribes or embeds does not answer.
    """

    name: str
    tools: bool = True
    sees: bool = False
    thinks: Thinks = Thinks.WHEN_ASKED
    transcribes: bool = False
    embeds: bool = False
    window: int | None = None
    price: Price | None = None

    @property
    def answers(self) -> bool:
        """Whether it can hold a conversation."""
        return not (self.transcribes or self.embeds)


@functools.cache
def load_preset_models() -> Mapping[str, tuple[PresetModel, ...]]:
    """The models by the ids of their presets, read when they are first wanted."""
    text = Path(__file__).with_name("preset_models.json").read_text(encoding="utf-8")
    providers = json.loads(text)["providers"]
    return {preset: tuple(map(_model, known["models"])) for preset, known in providers.items()}


def _model(facts: dict[str, Any]) -> PresetModel:
    read = {
        name: Decimal(text) for name, text in facts.get("price", {}).items() if name != "currency"
    }
    price = Price(**read, currency=facts["price"]["currency"]) if read else None
    thinks = Thinks(facts.get("thinks", Thinks.WHEN_ASKED))
    return PresetModel(**{**facts, "thinks": thinks, "price": price})
