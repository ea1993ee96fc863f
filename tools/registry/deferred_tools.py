"""Which tools the model is offered in full, and which are only named until it has found them.
Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tools.contract import ToolSpec
from tools.registry.offers import ResolvedTool

SEARCH_TOOL = "tool_search"
"""The tool that finds tools. Where it is not offered, nothing is deferred: the model could not
learn how to call it."""

NAMED, NAMED_CHARS = 100, 4_000
"""Characters of a line that names a tool, and of all of them: they go with the first request of
every run, and on record."""
DESCRIBED = NAMED_CHARS // NAMED
"""The most tools that are listed with a description; the others are listed by name only."""


@dataclass(frozen=True, slots=True)
class SplitTools:
    """The tools of a chat: ``shown`` in full, and ``deferred``, by name."""

    shown: list[ToolSpec]
    deferred: list[ToolSpec]

    def found(self, discovered: Sequence[str]) -> list[ToolSpec]:
        """The deferred tools among ``discovered``, in the order of that; what is no longer there is
        left out."""
        by_name = {spec.name: spec for spec in self.deferred} if discovered else {}
        return [by_name[name] for name in discovered if name in by_name]


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """What the model gets: the ``definitions`` of tools, and the names of tools it may search
    for."""

    definitions: list[dict[str, Any]]
    deferred: list[ToolSpec]


def split_deferred(offers: Sequence[ResolvedTool], above: float) -> SplitTools:
    """``offers`` as the model is to have them: tools from outside are deferred once there are more
    than ``above``."""
    deferrable = [
        offer for offer in offers if offer.is_deferrable and offer.spec.name != SEARCH_TOOL
    ]
    if not deferrable or all(offer.spec.name != SEARCH_TOOL for offer in offers):
        return SplitTools([offer.spec for offer in offers if offer.spec.name != SEARCH_TOOL], [])
    are_many = sum(offer.is_from_outside for offer in offers) > above
    deferred = {
        id(offer): offer.spec for offer in deferrable if are_many or offer.is_always_deferred
    }
    shown = [
        offer.spec
        for offer in offers
        if id(offer) not in deferred and (deferred or offer.spec.name != SEARCH_TOOL)
    ]
    return SplitTools(shown, sorted(deferred.values(), key=lambda spec: spec.name))


def format_tool_names(tools: Sequence[ToolSpec]) -> list[str]:
    """A numbered line for each of ``tools``, ``1. name: description``, as many as there is room
    for.

    More than ``DESCRIBED`` are named without their descriptions: a search looks into these.
    """
    lines: list[str] = []
    room = NAMED_CHARS
    for line in _lines(tools):
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return lines


def _lines(tools: Sequence[ToolSpec]) -> Iterator[str]:
    if len(tools) > DESCRIBED:
        yield from (f"{number}. {tool.name}" for number, tool in enumerate(tools, 1))
        return
    for number, tool in enumerate(tools, 1):
        line = f"{number}. {tool.name}: {_in_one_line(tool.description[: 2 * NAMED])}".removesuffix(
            ": "
        )
        yield line if len(line) <= NAMED else f"{line[: NAMED - 1]}…"


def _in_one_line(text: str) -> str:
    """``text``, which comes from elsewhere, without anything that could look like another line."""
    if not text.isprintable():
        text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return text
