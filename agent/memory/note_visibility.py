"""Notes as a viewer sees them: the one query that every look at them goes through."""

from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import connection
from django.db.models import Q, QuerySet

from agent.domain.notes import NoteViewer
from agent.memory.relevance import RecalledNote
from agent.models import Note
from tools.text.search_terms import key_term, search_terms

TermGroups = Sequence[Sequence[str]]
"""Terms of which one of each group has to be there."""

#: What a migration has made for it, by vendor: columns of tables, and triggers and indexes without
#: one.
PARTS = {
    "sqlite": [
        ("agent_note_search", "words"),
        *((f"agent_note_search_{change}", "") for change in ("insert", "delete", "update")),
    ],
    "postgresql": [("agent_note_search", "")],
}
#: Notes that are put in order, about.
RANKED = 400
#: Terms that are searched, among those that occur in more notes.
COMMON = 12
_MATCHING = "FROM agent_note_search WHERE agent_note_search MATCH %s"
_COUNT = f"(SELECT COUNT(*) FROM (SELECT 1 {_MATCHING} LIMIT {RANKED + 1}))"  # noqa: S608
_VECTOR = "array_to_tsvector(string_to_array(words, ' '))"


def search_notes(required: TermGroups, wanted: Sequence[str], limit: int) -> list[int]:
    """Keys of at most ``limit`` notes with one term of each ``required`` group and one of
    ``wanted``, the best first.

    An empty group asks for nothing. Whether a note may be seen is not decided here.
    """
    groups = [group for group in (*required, wanted) if group]
    return _SEARCHES[connection.vendor](groups, limit) if groups else []


def _sqlite(groups: TermGroups, limit: int) -> list[int]:
    """FTS5: the notes with the rarest terms ordered by its bm25, then the newest with the others.

    bm25 takes time for each term in each note that has any; to be found without it takes none.
    """
    *required, wanted = groups
    rare, common = _parted(wanted)
    found = _matches([*required, rare], "rank", limit) if rare else []
    if common and len(found) < limit:
        found += _matches([*required, common[:COMMON]], "rowid DESC", limit - len(found))
    return list(dict.fromkeys(found))


def _matches(groups: TermGroups, order: str, limit: int) -> list[int]:
    question = " AND ".join(
        "(" + " OR ".join(f'"{term}"' for term in group) + ")" for group in groups
    )
    return _keys(f"SELECT rowid {_MATCHING} ORDER BY {order} LIMIT %s", question, limit)


def _parted(terms: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those of ``terms`` that together are in at most ``RANKED`` notes, the rarest first, and the
    others that are in any."""
    counts = sorted(
        (count, term) for count, term in zip(_counts(terms), terms, strict=True) if count
    )
    total, rare = 0, 0
    for count, _ in counts:
        total += count
        rare += total <= RANKED
    ordered = [term for _, term in counts]
    return ordered[:rare], ordered[rare:]


def _counts(terms: Sequence[str]) -> list[int]:
    """How many notes have each of ``terms``, counted no further than matters."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join([_COUNT] * len(terms))}", [f'"{term}"' for term in terms]
        )
        return list(cursor.fetchone())


def _postgres(groups: TermGroups, limit: int) -> list[int]:
    """A tsvector of ready-made terms; no dictionary and no parser has a say."""
    question = " & ".join("(" + " | ".join(f"'{term}'" for term in group) + ")" for group in groups)
    wanted = " | ".join(f"'{term}'" for term in groups[-1])
    return _keys(
        f"SELECT id FROM agent_note WHERE {_VECTOR} @@ %s::tsquery"  # noqa: S608
        f" ORDER BY ts_rank({_VECTOR}, %s::tsquery) DESC, id DESC LIMIT %s",
        question,
        wanted,
        limit,
    )


def _keys(statement: str, *values: str | int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [pk for (pk,) in cursor.fetchall()]


_SEARCHES: dict[str, Callable[[TermGroups, int], list[int]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
}


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
