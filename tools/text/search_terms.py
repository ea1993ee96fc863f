"""The words that both databases search: made here, so that Chinese is found without spaces. Pure.

A text of a script without spaces becomes its single characters and its pairs (我喜欢猫 → 我 喜 欢
猫 我喜 喜欢 欢猫); anything else becomes its words. A search text becomes pairs only, if it has
more than one character.
"""

import hashlib
import re
import unicodedata

#: Characters of one word that count.
WORD_LIMIT = 32
#: The most terms of a note that are searched.
INDEX_LIMIT = 4_000
#: Terms that one search looks for.
SEARCH_LIMIT = 24
#: Characters of a message that terms are taken from, at each end.
READ_LIMIT = 2_000

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
# What stands in nearly every sentence and so says nothing of what it is about.
_COMMON_SIGNS = frozenset(
    "的了是我你您他她它们这那吗呢吧啊呀哦么不在有和与就都也很还要会能可以什怎样请问一个些下上来去说到没给把被让跟对为谁哪几"
)
_COMMON_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "he",
        "her",
        "him",
        "how",
        "i",
        "if",
        "in",
        "is",
        "it",
        "me",
        "my",
        "no",
        "of",
        "on",
        "or",
        "our",
        "please",
        "she",
        "so",
        "that",
        "the",
        "their",
        "them",
        "they",
        "this",
        "to",
        "us",
        "was",
        "we",
        "what",
        "when",
        "where",
        "which",
        "who",
        "why",
        "will",
        "with",
        "you",
        "your",
    ]
)


def normalize_text(text: str) -> str:
    """``text`` without differences of case, width and white space."""
    return " ".join(fold_text(text).split())


def fold_text(text: str) -> str:
    """``text`` without differences of case and width."""
    return unicodedata.normalize("NFKC", text).casefold()


def split_runs(text: str) -> list[str]:
    """The words of ``text``; signs of scripts without spaces that stand together are one run."""
    return _RUN.findall(text)


def is_unspaced(text: str) -> bool:
    """Whether there are signs of a script without spaces in ``text``."""
    return bool(_IS_UNSPACED.search(text))


def sign_pairs(run: str) -> list[str]:
    """Each two signs that stand together in a run of :func:`split_runs`; none for a word."""
    return [run[i : i + 2] for i in range(len(run) - 1)] if is_unspaced(run) else []


def index_terms(text: str) -> list[str]:
    """Every term under which ``text`` can be found, once each."""
    runs = split_runs(normalize_text(text))
    found = (term for run in runs for term in (*_signs(run), *sign_pairs(run)))
    return list(dict.fromkeys(found))[:INDEX_LIMIT]


def search_terms(text: str) -> list[str]:
    """The search terms of ``text``: terms with a meaning of their own, at most ``SEARCH_LIMIT``.

    Of a long text the beginning and the end count. A text of only common words is searched
    unchanged.
    """
    if len(text) > 2 * READ_LIMIT:
        text = f"{text[:READ_LIMIT]} {text[-READ_LIMIT:]}"
    runs = split_runs(normalize_text(text))
    every = list(dict.fromkeys(term for run in runs for term in sign_pairs(run) or _signs(run)))
    telling = [
        term for term in every if term not in _COMMON_WORDS and not _COMMON_SIGNS.issuperset(term)
    ] or every
    half = SEARCH_LIMIT // 2
    return telling if len(telling) <= SEARCH_LIMIT else telling[:half] + telling[-half:]


def key_term(*parts: str) -> str:
    """One word that stands for an exact key, such as an audience, among the terms of a note.

    It narrows a search and never decides: two keys could in theory have the same word.
    """
    key = "\0".join(parts).encode("utf-8", "replace")
    return f"k{hashlib.blake2b(key, digest_size=8).hexdigest()}"


def term_weight(term: str) -> float:
    """How much it says that two texts share ``term``: half as much where a part of it stands in
    nearly every text."""
    return 0.5 if any(sign in _COMMON_SIGNS for sign in term) else 1.0


def _signs(run: str) -> list[str]:
    return list(run) if is_unspaced(run) else [run[:WORD_LIMIT]]
