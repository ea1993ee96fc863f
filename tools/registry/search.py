"""Finding tools by words: MaiBot's scores, and pairs of signs where a script has no spaces. Pure.

The scores add up: the whole query is the name (1000), begins it (300), is in it (200), is
in the description (100); each term of the query is in the name (25), in the description
(10). Terms are what stands between spaces, ``_`` and ``-``. A term in which there is
Chinese, Japanese or Korean stands for its words and its pairs of signs as well
(查天气预报 → 查天 天气 气预 预报), without those that say nothing.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tools.contract import ToolSpec

EXACT, BEGINNING, IN_NAME, IN_DESCRIPTION = 1000, 300, 200, 100
TERM_IN_NAME, TERM_IN_DESCRIPTION = 25, 10

#: Characters of a query and of a description that are compared, and terms of a query.
QUERY_LIMIT, DESCRIPTION_LIMIT, TERM_LIMIT = 200, 1_000, 24

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_SEPARATORS = re.compile(r"[ _-]+")
# A pair with one of the first, or of two of the others, stands in requests for anything.
_PARTICLES = frozenset("的了是吗呢吧啊呀么哪")
_COMMON_SIGNS = frozenset(
    "我你您他她它们这那不在有和与就都也很还要会能可以什怎样请问一个些下上来去给把被让跟对为谁几帮想用找查看"
)


def rank_tools(query: str, tools: Iterable[ToolSpec]) -> list[ToolSpec]:
    """The tools that have anything of ``query``, the best first, and by name where they are
    equal."""
    wanted = normalize_query(query[:QUERY_LIMIT])
    terms = query_terms(wanted)
    scores = ((_score(wanted, terms, tool.name, tool.description), tool) for tool in tools)
    return [
        tool
        for _, tool in sorted(
            ((s, t) for s, t in scores if s), key=lambda one: (-one[0], one[1].name)
        )
    ]


def score_tool(query: str, name: str, description: str) -> int:
    """How well a tool fits; 0 where it has nothing of the query, and for a query of nothing but
    white space."""
    wanted = normalize_query(query[:QUERY_LIMIT])
    return _score(wanted, query_terms(wanted), name, description)


def _score(wanted: str, terms: list[str], name: str, description: str) -> int:
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


def normalize_query(query: str) -> str:
    """``query`` without differences of case, width and white space."""
    return " ".join(_folded(query).split())


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def query_terms(wanted: str) -> list[str]:
    """What a :func:`normalize_query` query is looked for by, each once."""
    parts = [part for part in _SEPARATORS.split(wanted) if part]
    return list(dict.fromkeys([*parts, *(piece for part in parts for piece in _pieces(part))]))[
        :TERM_LIMIT
    ]


def _pieces(part: str) -> Iterator[str]:
    """The words and pairs of signs of a part in which there are signs of a script without
    spaces."""
    if not _IS_UNSPACED.search(part):
        return
    for run in _RUN.findall(part):
        if not _IS_UNSPACED.match(run):
            yield run
            continue
        for place in range(len(run) - 1):
            pair = run[place : place + 2]
            if _PARTICLES.isdisjoint(pair) and not _COMMON_SIGNS.issuperset(pair):
                yield pair
