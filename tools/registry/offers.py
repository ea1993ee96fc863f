"""A tool as the operator configured it: its declaration combined with its row.

Which tools the model is offered in full, which are only named until it has found them, and how it
finds them by words. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tools.contract import JsonSchema, ToolProvider, ToolSpec
from tools.models.tool_config import AllowedCallers, ToolVisibility
from tools.registry.catalogue import (
    covers_fingerprint,
    declaration_fingerprint,
    declaration_json,
    declared_settings,
    needs_look,
    tool_source,
)
from tools.registry.settings import ToolSettings
from tools.text.search_terms import fold_text, is_unspaced, normalize_text, sign_pairs, split_runs

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

    @property
    def is_named_by_search(self) -> bool:
        """Whether it is one of the program's own that are on and deferred from the beginning: what
        finds them says that they are there, so that no request has to."""
        declared = declared_settings(self.declared)
        return not self.is_from_outside and declared.enabled and declared.visibility == _DEFERRED


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
    schema: JsonSchema | None, descriptions: Mapping[str, object]
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
    """The tools of a chat: ``shown`` in full, and ``deferred``, of which requests name those that
    are ``named``."""

    shown: list[ToolSpec]
    deferred: list[ToolSpec]
    named: list[ToolSpec]

    def found(self, discovered: Sequence[str]) -> list[ToolSpec]:
        """The deferred tools among ``discovered``, in the order of that; what is no longer there is
        left out."""
        by_name = {spec.name: spec for spec in self.deferred} if discovered else {}
        return [by_name[name] for name in discovered if name in by_name]


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """What the model gets: the ``definitions`` of tools, the tools it may search for, and those of
    them that its first request names."""

    definitions: list[dict[str, Any]]
    deferred: list[ToolSpec]
    named: list[ToolSpec]


def split_deferred(offers: Sequence[ResolvedTool], above: float) -> SplitTools:
    """``offers`` as the model is to have them: tools from outside are deferred once there are more
    than ``above``."""
    deferrable = [
        offer for offer in offers if offer.is_deferrable and offer.spec.name != SEARCH_TOOL
    ]
    if not deferrable or all(offer.spec.name != SEARCH_TOOL for offer in offers):
        shown = [offer.spec for offer in offers if offer.spec.name != SEARCH_TOOL]
        return SplitTools(shown, [], [])
    are_many = sum(offer.is_from_outside for offer in offers) > above
    deferred = sorted(
        (offer for offer in deferrable if are_many or offer.is_always_deferred),
        key=lambda offer: offer.spec.name,
    )
    left_out = {id(offer) for offer in deferred}
    shown = [
        offer.spec
        for offer in offers
        if id(offer) not in left_out and (deferred or offer.spec.name != SEARCH_TOOL)
    ]
    named = [offer.spec for offer in deferred if not offer.is_named_by_search]
    return SplitTools(shown, [offer.spec for offer in deferred], named)


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


# Found by words: MaiBot's scores, and pairs of characters for scripts without spaces.
#
# The scores add up: the whole query is the name (1000), begins it (300), is in it (200), is in the
# description (100); each term of the query is in the name (25), in the description (10). Terms are
# separated by spaces, ``_`` and ``-``. A term with Chinese, Japanese or Korean text also yields its
# words and its pairs of characters (查天气预报 → 查天 天气 气预 预报), except for those without
# meaning of their own.

EXACT, BEGINNING, IN_NAME, IN_DESCRIPTION = 1000, 300, 200, 100
TERM_IN_NAME, TERM_IN_DESCRIPTION = 25, 10

#: Characters of a query and of a description that are compared, and terms of a query.
QUERY_LIMIT, DESCRIPTION_LIMIT, TERM_LIMIT = 200, 1_000, 24

_SEPARATORS = re.compile(r"[ _-]+")
# A pair with one of the first, or with two of the others, occurs in requests of every kind.
_PARTICLES = frozenset("的了是吗呢吧啊呀么哪")
_COMMON_SIGNS = frozenset(
    "我你您他她它们这那不在有和与就都也很还要会能可以什怎样请问一个些下上来去给把被让跟对为谁几帮想用找查看"
)
_folded = lru_cache(maxsize=4096)(fold_text)


def rank_tools(query: str, tools: Iterable[ToolSpec]) -> list[ToolSpec]:
    """The tools that have anything of ``query``, the best first, and by name where they are
    equal."""
    wanted = normalize_text(query[:QUERY_LIMIT])
    terms = query_terms(wanted)
    scores = ((score_tool(wanted, terms, tool.name, tool.description), tool) for tool in tools)
    found = [(score, tool) for score, tool in scores if score]
    return [tool for _, tool in sorted(found, key=lambda pair: (-pair[0], pair[1].name))]


def score_tool(wanted: str, terms: list[str], name: str, description: str) -> int:
    """How well a tool fits the normalized query ``wanted`` and its ``terms``; 0 where it has
    nothing of it, and for a query of nothing but white space."""
    if not wanted:
        return 0
    name, description = _folded(name), _folded(description[:DESCRIPTION_LIMIT])
    found = IN_DESCRIPTION if wanted in description else 0
    if wanted in name:
        found += IN_NAME + BEGINNING * name.startswith(wanted) + EXACT * (wanted == name)
    both = f"{name}\n{description}"
    for term in terms:
        if term in both:  # most are in neither
            found += TERM_IN_NAME * (term in name) + TERM_IN_DESCRIPTION * (term in description)
    return found


def query_terms(wanted: str) -> list[str]:
    """The terms of a normalized query, each once."""
    terms = [part for part in _SEPARATORS.split(wanted) if part]
    for part in filter(is_unspaced, terms.copy()):
        for run in split_runs(part):
            terms += [run] if not is_unspaced(run) else filter(_is_telling, sign_pairs(run))
    return list(dict.fromkeys(terms))[:TERM_LIMIT]


def _is_telling(pair: str) -> bool:
    return _PARTICLES.isdisjoint(pair) and not _COMMON_SIGNS.issuperset(pair)
