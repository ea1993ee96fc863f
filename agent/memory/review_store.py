"""The review of the notes on record: it proposes to merge or to delete notes, which is done when a
person accepts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from agent.memory.note_visibility import to_recalled_notes
from agent.memory.notes_store import delete_note_rows
from agent.memory.relevance import RecalledNote
from agent.models import Note, NoteProposal

Kind, State = NoteProposal.ProposalKind, NoteProposal.ProposalState

#: How many notes of one owner and audience make a review, and how many are reviewed at a time.
CLUSTER_LEAST, CLUSTER_LIMIT = 6, 60
#: Owners that one review covers, and notes that it proposes to delete.
CLUSTERS, RETIRED = 20, 100
#: Days without use after which a note that no person wrote in the admin may go.
IDLE_DAYS = 180


@dataclass(frozen=True, slots=True)
class NoteCluster:
    """Notes of one owner for one audience, which alone may become one."""

    audience: str
    owner_kind: str
    owner_id: str
    notes: tuple[RecalledNote, ...]


@dataclass(frozen=True, slots=True)
class NoteMerge:
    """Notes of one cluster that say the same, and what one note would say instead."""

    pks: tuple[int, ...]
    text: str
    tags: tuple[str, ...] = ()


def find_note_clusters(limit: int) -> list[NoteCluster]:
    """The largest clusters, at most ``limit``. What waits for a decision is left out."""
    notes = Note.objects.exclude(source=Note.Source.OPERATOR)
    notes = notes.filter(expires_at=None).exclude(pk__in=_proposed())
    counted = notes.values_list("audience", "owner_kind", "owner_id").annotate(count=Count("pk"))
    large = counted.filter(count__gte=CLUSTER_LEAST).order_by("-count")[:limit]
    clusters = []
    for audience, kind, owner, _ in large:
        of_it = notes.filter(audience=audience, owner_kind=kind, owner_id=owner).order_by("-pk")
        newest = tuple(to_recalled_notes(of_it[:CLUSTER_LIMIT]))
        clusters.append(NoteCluster(audience, kind, owner, newest))
    return clusters


def _proposed() -> set[int]:
    """Notes that a waiting proposal speaks of."""
    waiting = NoteProposal.objects.filter(state=State.WAITING).values_list("note_ids", flat=True)
    return {pk for note_ids in waiting for pk in note_ids}


def propose_merges(model: str, merge: NoteMerge) -> int:
    """Put a merge, with the model that thought of it, up for decision; the key of the proposal."""
    return NoteProposal.objects.create(
        kind=Kind.MERGE,
        model=model,
        created_at=timezone.now(),
        note_ids=list(merge.pks),
        tags=list(merge.tags),
        text=merge.text,
        before=_before(merge.pks),
    ).pk


def propose_retirements(now: datetime) -> int:
    """Propose to delete what was not used for ``IDLE_DAYS`` before ``now``; how many notes that
    are."""
    since = now - timedelta(days=IDLE_DAYS)
    idle = Note.objects.filter(
        Q(last_used_at__lt=since) | Q(last_used_at=None, created_at__lt=since), created_at__lt=since
    )
    rejected = NoteProposal.objects.filter(kind=Kind.RETIRE, state=State.REJECTED).values_list(
        "note_ids", flat=True
    )
    spared = _proposed() | {pk for note_ids in rejected for pk in note_ids}
    pks = (
        idle.exclude(source=Note.Source.OPERATOR)
        .exclude(pk__in=spared)
        .order_by("pk")
        .values_list("pk", flat=True)[:RETIRED]
    )
    rows = [
        NoteProposal(kind=Kind.RETIRE, created_at=now, note_ids=[pk], before=_before([pk]))
        for pk in pks
    ]
    NoteProposal.objects.bulk_create(rows)
    return len(rows)


def delete_expired_notes(moment: datetime) -> int:
    """Delete notes that have expired; how many."""
    return delete_note_rows(Note.objects.filter(expires_at__lte=moment))


def decide_proposal(
    proposal_pk: int, *, by: str, accept: bool
) -> NoteProposal.ProposalState | None:
    """Do what was proposed, or say that it is not wanted; the proposal's state, None when it waits
    no more.

    Notes that have changed since are left as they are.
    """
    with transaction.atomic():
        proposal = (
            NoteProposal.objects.select_for_update()
            .filter(pk=proposal_pk, state=State.WAITING)
            .first()
        )
        if proposal is None:
            return None
        state = _applied(proposal) if accept else State.REJECTED
        NoteProposal.objects.filter(pk=proposal.pk).update(
            state=state, decided_by=by, decided_at=timezone.now()
        )
        return state


def _applied(proposal: NoteProposal) -> NoteProposal.ProposalState:
    if _before(proposal.note_ids) != proposal.before:
        return State.STALE
    notes = list(Note.objects.filter(pk__in=proposal.note_ids).order_by("pk"))
    if proposal.kind == Kind.MERGE:
        if len({(note.audience, note.owner_kind, note.owner_id) for note in notes}) != 1:
            return State.STALE
        _merge(notes, proposal)
    delete_note_rows(Note.objects.filter(pk__in=[note.pk for note in notes]))
    return State.APPLIED


def _merge(notes: list[Note], proposal: NoteProposal) -> None:
    """One note in the place of ``notes``: with their audience and owner, the newest one's origin,
    and all their uses."""
    merged = Note.objects.get(pk=notes[-1].pk)
    merged.pk = None
    merged.text, merged.tags = proposal.text, proposal.tags
    merged.created_at = timezone.now()
    merged.use_count = sum(note.use_count for note in notes)
    merged.last_used_at = max(
        (note.last_used_at for note in notes if note.last_used_at), default=None
    )
    merged.save(force_insert=True)


def _before(pks: Sequence[int]) -> list[dict[str, Any]]:
    rows = (
        Note.objects.filter(pk__in=pks)
        .order_by("pk")
        .values("pk", "text", "tags", "audience", "owner_kind", "owner_id")
    )
    return [dict(row) for row in rows]
