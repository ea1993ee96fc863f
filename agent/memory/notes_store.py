"""Notes on record: written, found, used and forgotten, each within what its viewer may see."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any, NamedTuple, ParamSpec, TypeVar

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agent.domain.notes import NoteViewer
from agent.memory.note_visibility import to_recalled_notes, visible_notes
from agent.memory.relevance import RecalledNote, rank_notes
from agent.memory.vector_store import NO_VECTOR, TextVector, find_note_candidates
from agent.models import (
    ChatSession,
    Digest,
    ErasureReceipt,
    Message,
    Note,
    NoteProposal,
    ToolCall,
)
from agent.models.note import DERIVED, note_fingerprint
from agent.models.operator import hash_person
from tools.models.change import delete_changes

P = ParamSpec("P")
R = TypeVar("R")

#: Notes about one person, one group or one chat for the same audience; more are refused.
OWNER_LIMIT = 500
#: Of notes about one person those that one other, and that all others together, had written down:
#: the person's own find room.
OTHER_LIMIT, OTHERS_LIMIT = 20, 200
#: Messages of a chat in which a person is searched, from the newest back.
PEOPLE_WINDOW = 2_000


@dataclass(frozen=True, slots=True)
class NewNote:
    """A note to store. ``person``: the person it is about; "" for the chat itself.

    ``call_pk`` is the tool call, and ``message_pk`` the message, in which it was said.
    """

    viewer: NoteViewer
    text: str
    tags: tuple[str, ...] = ()
    person: str = ""
    visibility: Note.Visibility = Note.Visibility.CHAT
    source: Note.Source = Note.Source.USER
    days: int | None = None
    call_pk: int | None = None
    message_pk: int | None = None
    said_by: str = ""
    said_by_name: str = ""


class NoteResult(Enum):
    """The result of a request to write or to remove a note."""

    DONE = auto()
    KNOWN = auto()
    """The same is on record already, in the same words and for the same audience."""
    FULL = auto()
    FULL_OF_OTHERS = auto()
    """Others, or this one alone, have had enough written down about the person."""
    UNKNOWN = auto()
    """There is no such note, or none that this viewer may see."""
    NOT_ALLOWED = auto()


@dataclass(frozen=True, slots=True)
class WrittenNote:
    """``pk`` is the note: the new one, or the one that says the same."""

    fate: NoteResult
    pk: int = 0


class RemovedNote(NamedTuple):
    """``kept``: the note as it was, in JSON, for :func:`restore_note`; None where it stayed."""

    fate: NoteResult
    kept: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NoteSearch:
    """What to look for. ``people``: notes about or by one of these; empty for all."""

    viewer: NoteViewer
    words: str = ""
    people: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 5
    meaning: TextVector = NO_VECTOR


@dataclass(frozen=True, slots=True)
class PersonProfile:
    """What one chat knows of a person; ``message_count`` goes no further back than the window."""

    person_id: str
    names: tuple[str, ...] = ()
    role: str = ""
    message_count: int = 0
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    notes: tuple[RecalledNote, ...] = ()


def write_notes(wish: NewNote) -> WrittenNote:
    """Store a note, unless the same is known or its owner has enough notes, in all or from
    others."""
    return _write(_new_note(wish))


def _write(note: Note) -> WrittenNote:
    here = Note.objects.filter(
        audience=note.own_audience, owner_kind=note.owner_kind, owner_id=note.owner_id
    )
    same = here.filter(fingerprint=note_fingerprint(note.text))
    if pk := same.values_list("pk", flat=True).first():
        return WrittenNote(NoteResult.KNOWN, pk)
    if here.values("pk")[:OWNER_LIMIT].count() >= OWNER_LIMIT:
        return WrittenNote(NoteResult.FULL)
    if note.owner_kind == Note.Owner.PERSON and note.said_by != note.owner_id:
        others = here.exclude(said_by=note.owner_id).exclude(source=Note.Source.OPERATOR)
        by_same = others.filter(said_by=note.said_by).values("pk")[:OTHER_LIMIT].count()
        if by_same >= OTHER_LIMIT or others.values("pk")[:OTHERS_LIMIT].count() >= OTHERS_LIMIT:
            return WrittenNote(NoteResult.FULL_OF_OTHERS)
    note.save()
    return WrittenNote(NoteResult.DONE, note.pk)


def _new_note(wish: NewNote) -> Note:
    viewer, now = wish.viewer, timezone.now()
    kind, owner = (Note.Owner.PERSON, wish.person) if wish.person else chat_owner(viewer)
    message_pk, speaker = None, ""
    if wish.call_pk is not None:  # the message that led to the call, and its sender's name
        calls = ToolCall.objects.values_list("run__message_id", "run__message__sender_name")
        message_pk, speaker = calls.get(pk=wish.call_pk)
    return Note(
        platform=viewer.platform,
        account=viewer.account,
        owner_kind=kind,
        owner_id=owner,
        visibility=wish.visibility,
        chat=viewer.chat,
        source=wish.source,
        said_by=wish.said_by or viewer.person,
        said_by_name=wish.said_by_name or speaker or "",
        message_id=wish.message_pk or message_pk,
        created_at=now,
        expires_at=now + timedelta(days=wish.days) if wish.days else None,
        tags=list(wish.tags),
        text=wish.text,
    )


def chat_owner(viewer: NoteViewer) -> tuple[Note.Owner, str]:
    """What notes about the viewer's chat itself are about: the group, or the private chat."""
    if viewer.is_private:
        return Note.Owner.SESSION, viewer.chat
    return Note.Owner.GROUP, viewer.peer


def delete_notes(viewer: NoteViewer, note_pk: int, is_manager: bool = False) -> RemovedNote:
    """Remove a note. A person removes what is about them or was said by them, a manager (an owner
    of the bot, or an admin of the group) what belongs to the chat."""
    note = visible_notes(viewer, timezone.now()).filter(pk=note_pk).first()
    if note is None:
        return RemovedNote(NoteResult.UNKNOWN)
    is_about = note.owner_kind == Note.Owner.PERSON and note.owner_id == viewer.person
    own = is_about or note.said_by == viewer.person
    if note.source == Note.Source.OPERATOR or not (own or is_manager):
        return RemovedNote(NoteResult.NOT_ALLOWED)
    names = (field.attname for field in Note._meta.concrete_fields if field.name not in DERIVED)
    values = {name: getattr(note, name) for name in names}
    delete_note_rows(Note.objects.filter(pk=note.pk))
    times = {name: at.isoformat() for name, at in values.items() if isinstance(at, datetime)}
    return RemovedNote(NoteResult.DONE, values | times)


def restore_note(call_pk: int) -> NoteResult:
    """Write the note again, under its number and within the limits of new ones, that the call
    ``call_pk`` has removed; ``UNKNOWN`` where nothing is kept of it, as of who was erased."""
    call = ToolCall.objects.only("structured_content", "created_at").get(pk=call_pk)
    noted = call.structured_content
    if not isinstance(noted, dict) or not noted.get("kept"):
        return NoteResult.UNKNOWN
    note = Note(**noted["kept"])
    people = [hash_person(note.platform, one) for one in (note.owner_id, note.said_by)]
    since = Q(finished_at=None) | Q(finished_at__gte=call.created_at)
    if ErasureReceipt.objects.filter(since, person_hash__in=people).exists():
        return NoteResult.UNKNOWN
    if Note.objects.filter(pk=note.pk).exists():
        return NoteResult.KNOWN
    if not Message.objects.filter(pk=note.message_id or 0).exists():
        note.message_id = None
    return _write(note).fate


def find_notes(searches: Sequence[NoteSearch]) -> list[list[RecalledNote]]:
    """The best notes for each search, or the newest ones where it has no words; what is found
    counts as used."""
    found = [_search_notes(search, timezone.now()) for search in searches]
    mark_notes_used({note.pk for notes in found for note in notes})
    return found


def _search_notes(search: NoteSearch, now: datetime) -> list[RecalledNote]:
    if search.words.strip():
        found = find_note_candidates(
            search.viewer, search.words, search.meaning, now, search.people
        )
        fitting = [note for note in found if _is_meant(note, search)]
        return rank_notes(search.words, fitting, now)[: search.limit]
    notes = visible_notes(search.viewer, now)
    if search.since:
        notes = notes.filter(created_at__gte=search.since)
    if search.until:
        notes = notes.filter(created_at__lte=search.until)
    if search.people:
        about = Q(owner_kind=Note.Owner.PERSON, owner_id__in=search.people)
        notes = notes.filter(about | Q(said_by__in=search.people))
    return to_recalled_notes(notes.order_by("-pk")[: search.limit])


def _is_meant(note: RecalledNote, search: NoteSearch) -> bool:
    """Whether the note is of the time and the people that are asked for."""
    people = {note.said_by, note.owner_id if note.owner_kind == Note.Owner.PERSON else ""}
    return (
        (not search.since or note.created_at >= search.since)
        and (not search.until or note.created_at <= search.until)
        and (not search.people or not people.isdisjoint(search.people))
    )


def mark_notes_used(pks: Iterable[int]) -> None:
    """Count one use of each note."""
    if pks := list(pks):
        Note.objects.filter(pk__in=pks).update(
            use_count=F("use_count") + 1, last_used_at=timezone.now()
        )


def find_people_by_name(viewer: NoteViewer, name: str) -> tuple[str, ...]:
    """Ids of the people of a chat who go by a name there, or have it as their id; the last speaker
    first."""
    name = name.strip().casefold()
    session = _session(viewer)
    if not name or session is None:
        return ()
    spoken = Message.objects.filter(session_id=session, direction=Message.Direction.IN)
    newest = spoken.order_by("-pk").values_list("sender_id", "sender_name")[:PEOPLE_WINDOW]
    return tuple(
        dict.fromkeys(
            pk for pk, called in newest if pk and name in (pk.casefold(), called.strip().casefold())
        )
    )


def _session(viewer: NoteViewer) -> int | None:
    kind, _colon, peer = viewer.chat.partition(":")
    sessions = ChatSession.objects.filter(
        platform=viewer.platform, account=viewer.account, kind=kind, peer_id=peer
    )
    return sessions.values_list("pk", flat=True).first()


def load_profiles(viewer: NoteViewer, person_id: str, limit: int) -> PersonProfile:
    """What a chat knows of a person by id: from its own messages, and from the notes it may see,
    at most so many."""
    about = visible_notes(viewer, timezone.now()).filter(
        owner_kind=Note.Owner.PERSON, owner_id=person_id
    )
    notes = tuple(to_recalled_notes(about.order_by("-pk")[:limit]))
    mark_notes_used(note.pk for note in notes)
    session = _session(viewer)
    spoken = Message.objects.filter(sender_id=person_id, direction=Message.Direction.IN)
    rows = spoken.values_list("session_id", "sender_name", "sender_role", "created_at")
    here = [row for row in rows.order_by("-pk")[:PEOPLE_WINDOW] if row[0] == session]
    if not here:
        return PersonProfile(person_id, notes=notes)
    names = tuple(dict.fromkeys(row[1] for row in here if row[1]))
    return PersonProfile(person_id, names, here[0][2], len(here), here[-1][3], here[0][3], notes)


def _peeking(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` with everything that it writes taken back."""

    def peek(*args: P.args, **kwargs: P.kwargs) -> R:
        with transaction.atomic():
            found = function(*args, **kwargs)
            transaction.set_rollback(True)
        return found

    return peek


peek_notes, peek_profiles = _peeking(find_notes), _peeking(load_profiles)


def find_person_notes(platform: str, person_id: str) -> "QuerySet[Note]":
    """Every note about a person or by them, in the chats of all accounts."""
    return Note.objects.filter(
        Q(owner_kind=Note.Owner.PERSON, owner_id=person_id) | Q(said_by=person_id),
        platform=platform,
    )


def erase_person(platform: str, person_id: str) -> int:
    """Delete the person's notes and every proposal that quotes one, and what calls that forgot
    some keep of them, and empty the summaries of their private chats.

    Returns how many notes there were.
    """
    with transaction.atomic():
        pks = set(find_person_notes(platform, person_id).values_list("pk", flat=True))
        proposals = NoteProposal.objects.values_list("pk", "note_ids").iterator()
        NoteProposal.objects.filter(
            pk__in=[pk for pk, quoted in proposals if not pks.isdisjoint(quoted)]
        ).delete()
        private = ChatSession.objects.filter(
            platform=platform, kind=ChatSession.Kind.PRIVATE, peer_id=person_id
        )
        Digest.objects.filter(session__in=private).update(text="")
        kept = "structured_content__kept__"
        forgotten = ToolCall.objects.filter(
            Q(**{f"{kept}owner_id": person_id}) | Q(**{f"{kept}said_by": person_id}),
            **{f"{kept}platform": platform},
            tool_name="forget",
        )
        forgotten.update(structured_content=None)
        delete_note_rows(find_person_notes(platform, person_id))
    return len(pks)


def delete_note_rows(notes: "QuerySet[Note]") -> int:
    """Delete ``notes`` with all that their changes keep of them; how many there were."""
    with transaction.atomic():
        delete_changes(notes)
        return notes.delete()[0]
