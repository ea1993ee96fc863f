"""Which of the notes that were found matter to a text. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tools.text.search_terms import index_terms, normalize_text, search_terms, term_weight

#: What a common tag is worth, in shared terms.
TAG_WORTH = 3.0
#: Shared terms from which on a note matters whatever else is asked, and those without which it
#: never does.
ENOUGH, LEAST = 2.0, 0.5
#: Part of a short question's terms that has to be shared.
SHARE = 0.15
#: Part of all their terms that texts share which say the same.
ALIKE = 0.75
#: Days after which a note's age counts half.
HALF_LIFE_DAYS = 60.0


@dataclass(frozen=True, slots=True)
class RecalledNote:
    """A note as it is read again. ``similarity`` is that of meaning where it matters, else 0."""

    pk: int
    text: str
    tags: tuple[str, ...]
    owner_kind: str
    owner_id: str
    said_by: str
    said_by_name: str
    source: str
    created_at: datetime
    use_count: int = 0
    words: str = ""
    """Its terms as they are on record."""
    similarity: float = 0.0


class RelevanceQuery:
    """A text, made ready for being compared with many notes."""

    def __init__(self, text: str) -> None:
        self._weights = {term: term_weight(term) for term in search_terms(text)}
        self._least = min(ENOUGH, max(LEAST, SHARE * sum(self._weights.values())))
        self._text = normalize_text(text)

    def score(self, note: RecalledNote) -> float:
        """How much of what is asked ``note`` speaks of, in shared terms; a tag that is named counts
        more."""
        shared = sum(self._weights[term] for term in self._weights.keys() & note.words.split())
        tags = sum(1 for tag in note.tags if (word := normalize_text(tag)) and word in self._text)
        return shared + TAG_WORTH * tags

    def is_relevant(self, worth: float) -> bool:
        """Whether that much is more than chance: some of a short question's terms, or enough of
        any."""
        return worth >= self._least


def rank_notes(text: str, notes: Iterable[RecalledNote], now: datetime) -> list[RecalledNote]:
    """Those of ``notes`` that speak of what ``text`` speaks of or mean, the best first; of equal
    ones the newer first."""
    question = RelevanceQuery(text)
    judged = [(note, question.score(note)) for note in notes]
    met = [
        (note, worth)
        for note, worth in judged
        if question.is_relevant(worth) or note.similarity > 0
    ]
    met.sort(key=lambda pair: (_score(pair[0], pair[1], now), pair[0].pk), reverse=True)
    return [note for note, _ in met]


def _score(note: RecalledNote, worth: float, now: datetime) -> float:
    days = max(0.0, (now - note.created_at).total_seconds() / 86_400)
    return worth + 10 * note.similarity + math.pow(0.5, days / HALF_LIFE_DAYS)


def are_similar_texts(one: str, other: str) -> bool:
    """Whether two texts say nearly the same in nearly the same words."""
    first, second = set(index_terms(one)), set(index_terms(other))
    return normalize_text(one) == normalize_text(other) or len(first & second) >= ALIKE * max(
        1, len(first | second)
    )
