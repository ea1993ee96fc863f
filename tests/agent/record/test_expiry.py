"""What is too old goes as a whole, and nothing that is still needed."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.models import (
    Approval,
    ChatSession,
    Description,
    KeptFile,
    Message,
    MessageMedia,
    Note,
    Run,
    Step,
    ToolCall,
)
from agent.record.waiting import expiry
from agent.runtime.record_retention import RetentionRule, erase_expired_rows

pytestmark = pytest.mark.django_db

OLD = timezone.now() - timedelta(days=40)
LIMIT = timezone.now() - timedelta(days=30)
In, Out, State = Message.Direction.IN, Message.Direction.OUT, Message.State


def chat(peer: str = "1") -> ChatSession:
    return ChatSession.objects.get_or_create(
        account="10001", kind="private", peer_id=peer, defaults={"last_message_at": OLD}
    )[0]


def said(
    direction: str = In, state: str = State.RECORDED, at: datetime = OLD, **fields: Any
) -> Message:
    usual = {"session": fields.get("session") or chat(), "text": "words"}
    return Message.objects.create(
        direction=direction, state=state, created_at=at, **(usual | fields)
    )


def exchange(at: datetime = OLD, *, call: str = "", **fields: Any) -> Run:
    """A message, the run for it with one step, and its answer, all in the history."""
    session = fields.pop("session", None) or chat()
    asked = said(state=State.ANSWERED, at=at, session=session, in_history=True)
    run = Run.objects.create(
        session=session, message=asked, state=Run.State.FINISHED, started_at=at, **fields
    )
    Message.objects.filter(pk=asked.pk).update(run=run)
    step = Step.objects.create(run=run, number=1, created_at=at)
    if call:
        ToolCall.objects.create(
            run=run, step=step, call_id="c", tool_name="t", state=call, created_at=at
        )
    said(Out, State.DELIVERED, at, session=session, run=run, in_history=True)
    return run


def erase(history: int = 0, kind: Any = expiry.erase_messages) -> int:
    count, after = 0, 0
    while True:
        erased = kind(LIMIT, history, after)
        count += erased.count
        if erased.after is None:
            return int(count)
        after = erased.after


def test_an_exchange_goes_with_all_that_belongs_to_it():
    run = exchange(call=ToolCall.State.SUCCEEDED)
    call = ToolCall.objects.get()
    Approval.objects.create(
        call=call, session=chat(), code="1", state="approved", created_at=OLD, expires_at=OLD
    )
    kept = KeptFile.objects.create(sha256="a" * 64, created_at=OLD, last_used_at=OLD)
    MessageMedia.objects.create(
        message_id=run.message_id or 0, kind="image", kept=kept, created_at=OLD
    )
    note = Note.objects.create(account="10001", chat="private:1", text="tea", message=run.message)
    Run.objects.create(
        parent=call, origin=Run.Origin.AGENT, state=Run.State.FINISHED, started_at=OLD
    )
    assert erase() == 2
    for model in (Message, Run, Step, ToolCall, Approval, MessageMedia):
        assert not model.objects.exists(), model
    assert (Note.objects.get().pk, Note.objects.get().message_id) == (note.pk, None)
    assert KeptFile.objects.exists()  # copies have a time of their own


def test_what_is_young_stays():
    said(at=timezone.now())
    exchange(timezone.now())
    said()
    assert erase() == 0  # rows are in the order of time, and the first is young


def test_messages_that_were_not_answered_go():
    for number in range(3):
        said(session=chat(str(number)))
    said(Out, State.FAILED)
    assert erase() == 4


@pytest.mark.parametrize("state", [State.WAITING, State.RUNNING])
def test_a_message_that_is_still_to_be_answered_stays_with_its_run(state):
    exchange()
    Message.objects.filter(direction=In).update(state=state)
    assert erase() == 0
    assert (Message.objects.count(), Run.objects.count()) == (2, 1)


@pytest.mark.parametrize("state", [State.PENDING, State.SENT])
def test_an_answer_that_is_still_on_its_way_keeps_its_exchange(state):
    exchange()
    Message.objects.filter(direction=Out).update(state=state)
    assert erase() == 0


def test_a_run_that_goes_on_keeps_its_exchange():
    exchange()
    Run.objects.update(state=Run.State.RUNNING)
    assert erase() == 0


def test_a_call_whose_outcome_is_to_come_keeps_its_exchange():
    exchange(call=ToolCall.State.PENDING)
    assert erase() == 0


def test_an_outcome_that_is_to_be_told_keeps_the_exchange_of_its_call():
    exchange(call=ToolCall.State.SUCCEEDED)
    said(
        state=State.WAITING,
        at=timezone.now(),
        reason=Message.Reason.LATER_RESULT,
        tool_call=ToolCall.objects.get(),
    )
    assert erase() == 0
    assert Message.objects.filter(tool_call__isnull=False).exists()


def test_an_answer_that_was_given_lately_keeps_its_question():
    exchange()
    Message.objects.filter(direction=Out).update(created_at=timezone.now())
    assert erase() == 0
    assert Run.objects.get().message is not None


def test_the_newest_of_each_chat_stay_as_history():
    runs = [exchange() for _ in range(4)]
    other = exchange(session=chat("2"))
    assert erase(history=3) == 4  # an exchange stays as a whole
    assert set(Run.objects.values_list("pk", flat=True)) == {runs[2].pk, runs[3].pk, other.pk}
    assert not Message.objects.filter(run=None).exists()


def test_a_chat_without_history_keeps_nothing():
    for _ in range(3):
        exchange()
    Message.objects.update(in_history=False)
    assert erase(history=3) == 6


def test_exchanges_across_batches_go_as_a_whole(monkeypatch):
    monkeypatch.setattr(expiry, "BATCH", 3)
    for _ in range(10):
        exchange()
        said()
    kept = exchange(call=ToolCall.State.PENDING)
    assert erase() == 30
    assert set(Message.objects.values_list("run", flat=True)) == {kept.pk}


def test_what_was_kept_goes_once_it_is_over(monkeypatch):
    monkeypatch.setattr(expiry, "BATCH", 1)
    exchange(call=ToolCall.State.PENDING)
    assert erase() == 0
    ToolCall.objects.update(state=ToolCall.State.SUCCEEDED)
    assert erase() == 2


def test_questions_of_programs_go_but_one_that_is_asked_now():
    for state in (Run.State.FINISHED, Run.State.RUNNING):
        Run.objects.create(origin=Run.Origin.HTTP, state=state, started_at=OLD)
    assert erase(kind=expiry.erase_runs) == 1
    assert Run.objects.get().state == Run.State.RUNNING


def test_what_was_read_in_media_goes_with_the_last_message_that_held_it():
    run = exchange()
    texts = [
        Description.objects.create(
            content=c * 64, prompt_kind="default", model="m", text=c, created_at=OLD
        )
        for c in "ab"
    ]
    MessageMedia.objects.create(
        message_id=run.message_id or 0, kind="image", description=texts[0], created_at=OLD
    )
    assert erase(kind=expiry.erase_descriptions) == 1
    assert Description.objects.get() == texts[0]
    erase()
    assert erase(kind=expiry.erase_descriptions) == 1


async def test_the_upkeep_goes_through_all_batches(record, monkeypatch, settings):
    settings.MAX_CONTEXT_MESSAGES = 2
    monkeypatch.setattr(expiry, "BATCH", 2)
    await _exchanges(5)
    assert (
        await erase_expired_rows(
            record, RetentionRule("messages", expiry.erase_messages, lambda: 30)
        )
        == 8
    )


async def _exchanges(count: int) -> None:
    await sync_to_async(lambda: [exchange() for _ in range(count)])()
