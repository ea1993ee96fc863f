"""Notes as a viewer sees them: the one query that every look at them goes through."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q, QuerySet

from agent.domain.notes import NoteViewer
from agent.memory.full_text import search_notes
from agent.memory.relevance import RecalledNote
from agent.models import Note
from tools.text.search_terms import key_term, search_terms

#: Notes that a search looks at more closely.
CANDIDATES = 40

_READ = (
    "pk",
    "text",
    "tags",
    "owner_kind",
    "owner_id",
    "said_by",
    "said_by_name",
    "source",
    "created_at",
    "use_count",
    "words",
)


def visible_notes(viewer: NoteViewer, now: datetime) -> "QuerySet[Note]":
    """The notes that ``viewer`` may see: the only way in which a chat gets at any."""
    fresh = Q(expires_at=None) | Q(expires_at__gt=now)
    return Note.objects.filter(fresh, audience__in=viewer.audiences)


def to_recalled_notes(notes: "QuerySet[Note]") -> list[RecalledNote]:
    """``notes`` as they are recalled."""
    rows = notes.values_list(*_READ)
    return [RecalledNote(pk, text, tuple(map(str, tags)), *rest) for pk, text, tags, *rest in rows]


def find_notes_by_words(
    viewer: NoteViewer, words: str, now: datetime, people: Sequence[str] = ()
) -> list[RecalledNote]:
    """Visible notes that hold some of ``words``, at most ``CANDIDATES``, in no order that
    matters."""
    audiences = [key_term(audience) for audience in viewer.audiences]
    terms = search_terms(words)
    pks = (
        search_notes(
            [audiences, [key_term("person", person) for person in people]], terms, CANDIDATES
        )
        if terms
        else []
    )
    return to_recalled_notes(visible_notes(viewer, now).filter(pk__in=pks)) if pks else []
