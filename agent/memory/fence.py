"""Notes as the model reads them: inside a fence (:mod:`tools.fences`), each one line of JSON. Pure."""

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from agent.memory.relevance import Recollection
from tools import fences
from tools.fences import Fence


def fitting_notes(notes: Sequence[Recollection], budget: int) -> list[Recollection]:
    """Those of ``notes``, in their order, that a block of at most ``budget`` characters holds.

    One that is too long for what is left is passed over.
    """
    room = budget - len(Fence.MEMORY.opening) - len(Fence.MEMORY.closing) - 1
    kept = []
    for note in notes:
        size = len(fences.json_line(shown(note))) + 1
        if size <= room:
            kept.append(note)
            room -= size
    return kept


def fenced(notes: Sequence[Recollection]) -> str:
    """``notes`` as a block; "" for none."""
    return fences.fenced(Fence.MEMORY, map(shown, notes)) if notes else ""


def shown(note: Recollection) -> dict[str, Any]:
    """What is told of a note: its number, whom it is about, who said it when, and the words."""
    about = {"person": "user_id", "group": "group_id", "session": "chat"}[note.owner_kind]
    said: dict[str, Any] = {"note": note.pk}
    if note.owner_id:
        said["about"] = {about: note.owner_id}
    if note.said_by:
        said["said_by"] = {"user_id": note.said_by, **({"name": name} if (name := fences.clean_name(note.said_by_name)) else {})}
    said["date"] = timezone.localtime(note.created_at).strftime("%Y-%m-%d")
    if note.tags:
        said["tags"] = list(note.tags)
    return said | {"text": note.text}


def fenced_summary(text: str) -> str:
    """A summary as a block; "" for none."""
    return fences.fenced(Fence.SUMMARY, [{"summary": text}]) if text else ""
