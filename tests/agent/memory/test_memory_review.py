"""The review of the notes: proposed by a job, decided by a person."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from agent.memory.relevance import RecalledNote
from agent.memory.review import (
    CLUSTER_LEAST,
    IDLE_DAYS,
    NoteCluster,
    NoteMerge,
    decide_proposal,
    find_note_clusters,
    parse_merges,
    propose_merges,
    propose_retirements,
    review_notes,
)
from agent.models import Note, NoteProposal
from agent.record.record import Record
from tests.agent.notes import ANN_AT_HOME, ANN_IN_GROUP, BOB_IN_GROUP, noted, texts, told_everyone
from tests.agent.talk import Script

pytestmark = pytest.mark.django_db


def some_notes(count: int = CLUSTER_LEAST) -> list[int]:
    return [noted(ANN_IN_GROUP, f"喜欢第{number}种苹果").pk for number in range(count)]


def idle(pk: int, days: int = IDLE_DAYS + 1) -> None:
    long_ago = timezone.now() - timedelta(days=days)
    Note.objects.filter(pk=pk).update(created_at=long_ago, last_used_at=None)


def proposed(*pks: int, text: str = "喜欢各种苹果") -> int:
    return propose_merges("m", NoteMerge(pks, text, ("水果",)))


# --- What is proposed -------------------------------------------------------------


def test_only_many_notes_of_one_owner_for_one_audience_are_looked_through():
    some_notes()
    noted(BOB_IN_GROUP, "一条")
    noted(ANN_AT_HOME, "别处的一条")
    (cluster,) = find_note_clusters(10)
    assert (cluster.owner_id, len(cluster.notes)) == ("20001", CLUSTER_LEAST)
    proposed(cluster.notes[0].pk, cluster.notes[1].pk)
    assert find_note_clusters(10) == []


def answer(*items: Any) -> str:
    return json.dumps(list(items), ensure_ascii=False)


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([{"ids": [1, 2], "text": "a"}], [(1, 2)]),
        ([{"ids": [1, 2], "text": "a"}, {"ids": [2, 3], "text": "b"}], [(1, 2)]),
        (
            [{"ids": [3, 1], "text": "a", "tags": ["t", 5]}, {"ids": [2, 4], "text": "b"}],
            [(1, 3), (2, 4)],
        ),
        (
            [
                {"ids": [1], "text": "a"},
                {"ids": [1, 1], "text": "a"},
                {"ids": [1, 99], "text": "a"},
            ],
            [],
        ),
        (
            [
                {"ids": ["1", "2"], "text": "a"},
                {"ids": [1, 2], "text": " "},
                {"ids": [1, 2], "text": "x" * 9_999},
                5,
            ],
            [],
        ),
        ([{"ids": list(range(1, 10)), "text": "a"}], []),
    ],
)
def test_a_merge_is_taken_of_known_notes_that_no_other_merge_has(
    items: list[Any], found: list[tuple[int, ...]]
):
    notes = [
        RecalledNote(pk, "t", (), "person", "1", "1", "", "user", timezone.now())
        for pk in range(1, 10)
    ]
    cluster = NoteCluster("a", "person", "1", tuple(notes))
    assert [merge.pks for merge in parse_merges(answer(*items), cluster)] == found


def test_what_was_long_of_no_use_may_go_unless_the_operator_wrote_it_or_said_no():
    old, used = noted(ANN_IN_GROUP, "旧的").pk, noted(ANN_IN_GROUP, "常用的").pk
    for pk in (old, used, told_everyone("公告").pk):
        idle(pk)
    Note.objects.filter(pk=used).update(last_used_at=timezone.now())
    assert propose_retirements(timezone.now()) == 1
    assert propose_retirements(timezone.now()) == 0
    decide_proposal(NoteProposal.objects.get().pk, by="admin", accept=False)
    assert propose_retirements(timezone.now()) == 0
    assert Note.objects.count() == 3


# --- What is decided --------------------------------------------------------------


def test_accepted_notes_become_one_for_the_same_audience():
    first, second, *_ = some_notes(3)
    Note.objects.filter(pk=first).update(use_count=3)
    assert (
        decide_proposal(proposed(first, second), by="admin", accept=True)
        == NoteProposal.State.APPLIED
    )
    assert texts(ANN_IN_GROUP, "水果 苹果")[0] == "喜欢各种苹果"
    assert Note.objects.count() == 2
    merged = Note.objects.get(text="喜欢各种苹果")
    assert (merged.owner_id, merged.chat, merged.use_count) == ("20001", "group:30001", 4)
    assert [note["text"] for note in NoteProposal.objects.get().before] == [
        "喜欢第0种苹果",
        "喜欢第1种苹果",
    ]


def test_a_proposal_is_decided_once_and_a_rejected_one_changes_nothing():
    pk = proposed(*some_notes(2))
    assert decide_proposal(pk, by="admin", accept=False) == NoteProposal.State.REJECTED
    assert decide_proposal(pk, by="admin", accept=True) is None
    assert Note.objects.count() == 2


def test_notes_that_changed_since_are_left_as_they_are():
    first, second = some_notes(2)
    pk = proposed(first, second)
    note = Note.objects.get(pk=second)
    note.text = "不再喜欢苹果"
    note.save()
    assert decide_proposal(pk, by="admin", accept=True) == NoteProposal.State.STALE
    assert Note.objects.count() == 2


def test_notes_of_two_audiences_never_become_one():
    pks = noted(ANN_IN_GROUP, "喜欢苹果").pk, noted(ANN_AT_HOME, "喜欢苹果").pk
    assert decide_proposal(proposed(*pks), by="admin", accept=True) == NoteProposal.State.STALE
    assert Note.objects.count() == 2


# --- The job ----------------------------------------------------------------------


async def note_pks(record: Record) -> list[int]:
    return [pk async for pk in Note.objects.order_by("pk").values_list("pk", flat=True)]


@pytest.fixture
def many(transactional_db: None) -> list[int]:
    return some_notes()


async def test_the_job_proposes_and_changes_nothing(many: list[int], record: Record):
    model = Script(answer({"ids": many[:2], "text": "喜欢苹果"}))
    assert await review_notes(record, model) == (1, 0)
    assert await note_pks(record) == many
    proposal = await NoteProposal.objects.aget()
    assert (proposal.kind, proposal.state, proposal.model, proposal.note_ids) == (
        "merge",
        "waiting",
        "script",
        many[:2],
    )


async def test_a_model_that_fails_stops_only_its_own_part(many: list[int], record: Record):
    assert await review_notes(record, Script("我不知道")) == (0, 0)
    assert not await NoteProposal.objects.aexists()


@pytest.mark.django_db(transaction=True)
def test_the_command_says_what_it_proposed(many: list[int]):
    idle(many[0])
    out = StringIO()
    call_command("review_notes", "--without-model", stdout=out)
    assert "1" in out.getvalue()
    assert NoteProposal.objects.get().kind == "retire"
