"""Which of the notes that were found matter to a text. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from agent.llm.requests.messages import ChatMessage
from tools.text import fences
from tools.text.fences import FenceKind
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


# Notes as the model reads them: inside a fence (`tools.text.fences`), each one line of JSON.
# Pure.


def fit_notes(notes: Sequence[RecalledNote], budget: int) -> list[RecalledNote]:
    """Those of ``notes``, in their order, that a block of at most ``budget`` characters holds.

    One that is too long for what is left is passed over.
    """
    room = budget - len(FenceKind.MEMORY.opening) - len(FenceKind.MEMORY.closing) - 1
    kept = []
    for note in notes:
        size = len(fences.json_line(describe_note(note))) + 1
        if size <= room:
            kept.append(note)
            room -= size
    return kept


def quote_notes(notes: Sequence[RecalledNote]) -> str:
    """``notes`` as a block; "" for none."""
    return fences.fence_values(FenceKind.MEMORY, map(describe_note, notes)) if notes else ""


def describe_note(note: RecalledNote) -> dict[str, object]:
    """One note as the model sees it: its number, the person it is about, who said it when, and the
    text."""
    about = {"person": "user_id", "group": "group_id", "session": "chat"}[note.owner_kind]
    said: dict[str, object] = {"note": note.pk}
    if note.owner_id:
        said["about"] = {about: note.owner_id}
    if note.said_by:
        said["said_by"] = {
            "user_id": note.said_by,
            **({"name": name} if (name := fences.clean_name(note.said_by_name)) else {}),
        }
    said["date"] = timezone.localtime(note.created_at).strftime("%Y-%m-%d")
    if note.tags:
        said["tags"] = list(note.tags)
    return said | {"text": note.text}


def quote_summary(text: str) -> str:
    """A summary as a block; "" for none."""
    return fences.fence_values(FenceKind.SUMMARY, [{"summary": text}]) if text else ""


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """Fenced texts, "" for none, and where in a first request they stand.

    They are messages of the user's role, for some endpoints take a system message only
    at the beginning, and what they hold must not speak with the authority of the prompt. The
    summary stands before the history and changes seldom, so that what comes before the new
    words stays the same for the provider's cache; the memory stands right before the
    current message.
    """

    summary: str = ""
    memory: str = ""

    @property
    def count(self) -> int:
        """How many messages are added to a request."""
        return bool(self.summary) + bool(self.memory)

    @property
    def size(self) -> int:
        """Characters that are added to a request."""
        return len(self.summary) + len(self.memory)

    def insert_into(self, request: list[ChatMessage]) -> list[ChatMessage]:
        """``request``, which begins with the system message and ends with the current one, with the
        background in its place."""
        system, *history, current = request
        return [system, *_said(self.summary), *history, *_said(self.memory), current]


def _said(text: str) -> list[ChatMessage]:
    return [{"role": "user", "content": text}] if text else []
