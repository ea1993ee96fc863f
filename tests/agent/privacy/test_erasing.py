"""Erasing a person: everything of theirs goes, wherever it is; what others said stays."""

import json
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.utils import timezone

from agent.domain.notes import NoteViewer
from agent.memory.notes_store import NoteResult, delete_notes, restore_note
from agent.models import (
    ChatEvent,
    ChatSession,
    Description,
    Digest,
    ErasureReceipt,
    KeptFile,
    Message,
    MessageMedia,
    Note,
    OperatorAct,
    Reminder,
    Run,
    SpendSum,
    Step,
    ToolCall,
)
from agent.privacy.erasing import begin_erasure, continue_erasure
from agent.privacy.person import Person
from agent.privacy.phases import PHASES
from onebot.gateway.person_events import erase_events
from onebot.models import ClientEvent
from tests.admin.record import answered, call_of, chat, said, step_of

GOING, STAYING = "71000001", "72000002"
SECRET, OTHER = "我住在长安街1号", "今天下雨"
EVERY = (*PHASES, erase_events)

pytestmark = pytest.mark.django_db


def erase(phases: Any = EVERY, seconds: float = 60) -> tuple[ErasureReceipt, list[str]]:
    author, _ = User.objects.get_or_create(username="eve")
    receipt, removed = begin_erasure(Person(GOING), author), list[str]()
    continue_erasure(receipt, phases, removed.extend, seconds)
    receipt.refresh_from_db()
    return receipt, removed


def record_of_two_people() -> ChatSession:
    """A group in which one, who is going to be erased, and another were answered."""
    group = chat("900")
    private = chat(GOING, kind="private")
    own = said(group, SECRET, sender_id=GOING, sender_name="木木", message_id="m1")
    other = said(group, OTHER, sender_id=STAYING, sender_name="Bob", quoted_id="m1")
    Message.objects.filter(pk=other.pk).update(
        context_text=json.dumps({"user_id": GOING, "text": SECRET}, ensure_ascii=False),
        header={"mentions": [{"user_id": GOING, "name": "木木"}]},
    )
    held = [{"role": "user", "content": f'{{"user_id": "{GOING}"}}\n{SECRET}'}]
    for message, words in ((own, SECRET), (other, "会下雨")):
        run = answered(message, words).run
        assert run is not None
        step = step_of(run, request=held, response={"content": words})
        call_of(step, arguments={"who": GOING, "what": SECRET}, requested_by=message.sender_id)
    answered(said(private, SECRET, sender_id=GOING, sender_name="木木"), SECRET)
    now = timezone.now()
    kept = KeptFile.objects.create(sha256="a" * 64, created_at=now, last_used_at=now)
    description = Description.objects.create(
        content="a", prompt_kind="picture", model="v", text=SECRET, created_at=now
    )
    MessageMedia.objects.create(
        message=own, kind="image", kept=kept, description=description, created_at=now
    )
    shared = KeptFile.objects.create(sha256="b" * 64, created_at=now, last_used_at=now)
    for message in (own, other):
        MessageMedia.objects.create(
            message=message, position=1, kind="image", kept=shared, created_at=now
        )
    Digest.objects.create(
        session=group, kind="summary", first_run=1, last_run=1, created_at=now, text=SECRET
    )
    Note.objects.create(owner_kind="person", owner_id=GOING, text=SECRET, said_by=GOING)
    Note.objects.create(owner_kind="person", owner_id=STAYING, text=OTHER, said_by=STAYING)
    SpendSum.objects.create(day="2026-11-22", kind="person", subject=f"onebot:10001/{GOING}")
    SpendSum.objects.create(day="2026-11-22", kind="person", subject=f"onebot:10001/{STAYING}")
    ClientEvent.objects.create(self_id="10001", created_at=now, raw={"user_id": int(GOING)})
    for number, field in enumerate(("user_id", "target_id", "operator_id")):
        happened(group, number, **{field: GOING}, words=SECRET)
    happened(private, 0, kind="poke")
    happened(group, 9, user_id=STAYING, words=OTHER)
    return group


def happened(session: ChatSession, key: int, **facts: Any) -> ChatEvent:
    usual = {"kind": "card", "key": str(key), "at": timezone.now()}
    return ChatEvent.objects.create(session=session, **{**usual, **facts})


def everything() -> str:
    """All rows that hold words of chats, as one text."""
    kinds = [
        *apps.get_app_config("agent").get_models(),
        *apps.get_app_config("onebot").get_models(),
    ]
    rows = [row for kind in kinds if kind._meta.managed for row in kind._default_manager.all()]
    return json.dumps(json.loads(serializers.serialize("json", rows)), ensure_ascii=False)


def test_nothing_of_the_person_is_left_and_all_of_the_other_is():
    record_of_two_people()
    assert SECRET in everything()
    receipt, removed = erase()
    left = everything()
    assert receipt.finished_at is not None
    assert (SECRET in left, GOING in left, "木木" in left) == (False, False, False)
    assert OTHER in left
    assert "会下雨" in left
    assert removed == ["a" * 64]
    assert list(Note.objects.values_list("owner_id", flat=True)) == [STAYING]
    assert SpendSum.objects.get().subject.endswith(STAYING)
    assert ChatEvent.objects.get().words == OTHER


def test_the_receipt_counts_what_went_and_names_nobody():
    record_of_two_people()
    receipt, _removed = erase()
    assert receipt.counts == {
        "messages": 4,
        "runs": 2,
        "requests": 2,
        "tool_calls": 2,
        "media": 2,
        "descriptions": 1,
        "quotes": 1,
        "names": 1,
        "summaries": 1,
        "notes": 1,
        "sums": 1,
        "chats": 1,
        "events": 4,
    }
    assert (receipt.progress, receipt.author_name) == ({}, "eve")
    assert receipt.person_hash == Person(GOING).hash
    assert OperatorAct.objects.get().kind == "erase"


def test_an_erasure_that_is_broken_off_is_gone_on_with_by_the_same_receipt():
    record_of_two_people()
    first, _ = erase(seconds=0)
    assert (first.finished_at, first.progress["phase"]) == (None, 1)
    again, _ = erase()
    assert again.pk == first.pk
    assert again.counts["requests"] == 2
    assert SECRET not in everything()


def test_a_batch_that_fails_counts_nothing():
    record_of_two_people()

    def fails(*_given: Any) -> Any:
        Message.objects.all().delete()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        erase(phases=(fails,))
    assert Message.objects.count() == 6
    assert ErasureReceipt.objects.get().counts == {}


def test_what_is_being_answered_stays_and_the_receipt_says_so():
    group = record_of_two_people()
    said(group, SECRET, sender_id=GOING, state="waiting", reason="mention")
    receipt, _ = erase()
    assert receipt.kept == {"unsettled": 1}
    assert Message.objects.filter(sender_id=GOING).count() == 1


def test_a_number_within_anothers_number_is_another_person():
    message = said(chat("900"), OTHER, sender_id=f"{GOING}9")
    erase()
    assert Message.objects.get() == message
    assert not Run.objects.exists()
    assert not Step.objects.exists()


def test_reminders_of_the_person_go_first_and_what_is_on_its_way_is_not_said():
    group, due = chat("900"), timezone.now()
    message = said(group, SECRET, sender_id=GOING, state="waiting", reason="reminder")
    usual = {"session": group, "text": SECRET, "due_at": due}
    Reminder.objects.create(set_by=GOING, fired=message.pk, **usual)
    Reminder.objects.create(set_by=STAYING, **usual)
    receipt, _ = erase()
    assert [row.set_by for row in Reminder.objects.all()] == [STAYING]
    assert receipt.counts["reminders"] == 1
    assert not Message.objects.filter(pk=message.pk).exists()


def test_what_calls_keep_of_the_person_to_take_it_back_goes_and_does_not_come_back():
    """Also where the person never said a word."""
    asked = said(chat("900"), OTHER, sender_id=STAYING)
    place = {"account": "10001", "chat": "group:900", "source": "user"}
    note = Note.objects.create(owner_id=GOING, said_by=STAYING, text=SECRET, **place)
    viewer = NoteViewer("onebot", "10001", "group:900", STAYING)
    kept = {"kept": delete_notes(viewer, note.pk).kept}
    step = step_of(answered(asked, OTHER).run or Run())
    call = call_of(step, "forget", structured_content=kept, requested_by=STAYING)
    before = {"set_by": GOING, "before": {"text": SECRET}}
    call_of(step, "change_reminder", structured_content=before, position=1)
    erase()
    assert SECRET not in everything()
    ToolCall.objects.filter(pk=call.pk).update(structured_content=kept)  # it ended that late
    assert restore_note(call.pk) is NoteResult.UNKNOWN
    assert not Note.objects.exists()
