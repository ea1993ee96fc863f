"""Finds tools by words: MaiBot's scores, and pairs of characters for scripts without spaces. Pure.

The scores add up: the whole query is the name (1000), begins it (300), is in it (200), is in the
description (100); each term of the query is in the name (25), in the description (10). Terms are
separated by spaces, ``_`` and ``-``. A term with Chinese, Japanese or Korean text also yields its
words and its pairs of characters (查天气预报 → 查天 天气 气预 预报), except for those without
meaning of their own.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from tools.contract import ToolSpec
from tools.text.search_terms import fold_text, is_unspaced, normalize_text, sign_pairs, split_runs

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
