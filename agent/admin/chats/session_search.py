"""Words inside one chat: where they were said, the newest first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from agent.models import ChatSession, Message
from tools.admin.filters import LISTED_WINDOW, listed_floor
from tools.admin.record_pages import WORD_LIMIT
from tools.text.visible import escape_direction_chars

#: Messages that a search shows; characters before and after the first word that was found.
MOST_HITS, AROUND = 50, 60
#: The newest messages of the chat that are searched.
SEARCHED = LISTED_WINDOW


@dataclass(frozen=True, slots=True)
class Hit:
    """A message in which all words are; ``parts`` are its words around the first of them, those
    that were searched for marked True."""

    message: Message
    parts: list[tuple[str, bool]]

    @property
    def name(self) -> str:
        return escape_direction_chars(self.message.sender_name or self.message.sender_id)


def search_chat(session: ChatSession, term: str) -> list[Hit]:
    """The newest messages of ``session`` that hold every word of ``term``, in their text or their
    sender's name, or that are of the person with that id."""
    words = term.replace("\0", "").split()[:WORD_LIMIT]
    if not words:
        return []
    rows = Message.objects.filter(session=session)
    said = Q(*(Q(text__icontains=word) | Q(sender_name__icontains=word) for word in words))
    found: Any = rows.filter(said | Q(sender_id=term.strip()), pk__gte=listed_floor(rows))
    shown = found.only("direction", "sender_id", "sender_name", "created_at", "text", "session_id")
    return [
        Hit(message, mark_words(escape_direction_chars(message.text), words))
        for message in shown.order_by("-pk")[:MOST_HITS]
    ]


def mark_words(text: str, words: list[str]) -> list[tuple[str, bool]]:
    """The part of ``text`` around the first of ``words``, cut where they begin and end. Pure."""
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    first = pattern.search(text)
    begin = max(0, first.start() - AROUND) if first else 0
    shown = text[begin : begin + 4 * AROUND]
    parts = list(_cut(shown, pattern))
    if begin:
        parts.insert(0, ("…", False))
    if begin + len(shown) < len(text):
        parts.append(("…", False))
    return parts


def _cut(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    at = 0
    for found in pattern.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], False
        yield found[0], True
        at = found.end()
    if at < len(text):
        yield text[at:], False
