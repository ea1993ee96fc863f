"""Erasing a person from the memory: their notes, and what was made of them. The messages on record
stay."""

from collections.abc import Collection

from django.db import transaction
from django.db.models import Q, QuerySet

from agent.models import ChatSession, Digest, Note, NoteProposal
from tools.admin.config_history import forget_changes


def find_person_notes(platform: str, person_id: str) -> "QuerySet[Note]":
    """Every note about a person or told by them, in the chats of whatever account."""
    return Note.objects.filter(
        Q(owner_kind=Note.Owner.PERSON, owner_id=person_id) | Q(said_by=person_id),
        platform=platform,
    )


def erase_person(platform: str, person_id: str) -> int:
    """Delete the person's notes and every proposal that quotes one, and empty the summaries of
    their private chats.

    Returns how many notes there were.
    """
    with transaction.atomic():
        pks = set(find_person_notes(platform, person_id).values_list("pk", flat=True))
        _drop_proposals(pks)
        private = ChatSession.objects.filter(
            platform=platform, kind=ChatSession.Kind.PRIVATE, peer_id=person_id
        )
        Digest.objects.filter(session__in=private).update(text="")
        delete_notes(find_person_notes(platform, person_id))
    return len(pks)


def delete_notes(notes: "QuerySet[Note]") -> int:
    """Delete ``notes`` with all that their changes keep of them; how many there were."""
    with transaction.atomic():
        forget_changes(notes)
        return notes.delete()[0]


def _drop_proposals(note_pks: Collection[int]) -> None:
    proposals = NoteProposal.objects.values_list("pk", "note_ids").iterator()
    NoteProposal.objects.filter(
        pk__in=[pk for pk, quoted in proposals if not set(note_pks).isdisjoint(quoted)]
    ).delete()
