"""Notes as the model reads them: inside a fence (:mod:`tools.text.fences`), each one line of JSON.
Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from agent.llm.requests.messages import ChatMessage
from agent.memory.relevance import RecalledNote
from tools.text import fences
from tools.text.fences import FenceKind


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


def describe_note(note: RecalledNote) -> dict[str, Any]:
    """One note as the model sees it: its number, the person it is about, who said it when, and the
    text."""
    about = {"person": "user_id", "group": "group_id", "session": "chat"}[note.owner_kind]
    said: dict[str, Any] = {"note": note.pk}
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
