"""Notes as a viewer sees them: the one query that every look at them goes through."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q, QuerySet

from agent.memory.audience import Viewer
from agent.memory.relevance import Recollection
from agent.memory.terms import key_term, search_terms
from agent.models import Note
from agent.store.note_search import hits

#: Notes that a search looks at more closely.
CANDIDATES = 40

_READ = ("pk", "text", "tags", "owner_kind", "owner_id", "said_by", "said_by_name", "source", "created_at", "use_count", "words")


def visible(viewer: Viewer, now: datetime) -> "QuerySet[Note]":
    """The notes that ``viewer`` may see: the only way in which a chat gets at any."""
    fresh = Q(expires_at=None) | Q(expires_at__gt=now)
    return Note.objects.filter(fresh, audience__in=viewer.audiences)


def read(notes: "QuerySet[Note]") -> list[Recollection]:
    """``notes`` as they are recalled."""
    rows = notes.values_list(*_READ)
    return [Recollection(pk, text, tuple(map(str, tags)), *rest) for pk, text, tags, *rest in rows]


def found_by_words(viewer: Viewer, words: str, now: datetime, people: Sequence[str] = ()) -> list[Recollection]:
    """Visible notes that hold some of ``words``, at most ``CANDIDATES``, in no order that matters."""
    audiences = [key_term(audience) for audience in viewer.audiences]
    terms = search_terms(words)
    pks = hits([audiences, [key_term("person", person) for person in people]], terms, CANDIDATES) if terms else []
    return read(visible(viewer, now).filter(pk__in=pks)) if pks else []
