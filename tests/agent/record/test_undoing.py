"""What is taken back of runs, as the record has it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone, translation

from agent.domain.approvals import parse_approval_reply
from agent.domain.types import ChatAddress
from agent.domain.undo import UndoAsker, UndoKind, UndoOutcome, UndoReach, UndoState
from agent.media.media_store import HeardText, load_segments, save_heard_texts
from agent.models import Approval, ChatSession, Digest, Message, Run, ServerProcess, UndoStep
from agent.record.chats.ambient import AmbientRequest, find_ambient
from agent.record.chats.chat_record import find_address, find_messages, load_message_page
from agent.record.sums.owner_notes import tell_owners
from agent.record.waiting.approvals import ApprovalOutcome, apply_approval_decision
from agent.record.waiting.undoing import (
    UndoRefused,
    UndoWish,
    begin_undo_step,
    find_left_undo_steps,
    has_more,
    load_undo_steps,
    plan_undo,
    settle_undo_step,
)
from tests.admin.record import answered, call_of, chat, run_for, said, step_of
from tools.text.fences import FenceKind, fence_values

pytestmark = pytest.mark.django_db
OWNER = UndoAsker("1", "1", UndoReach.EVERYTHING)
ANN, BOB = UndoAsker("20001", "20001"), UndoAsker("20002", "20002")
TOOLS = frozenset({"mute_member"})


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    with translation.override("en"):
        yield


@pytest.fixture
def session() -> ChatSession:
    return chat()


def exchange(session: ChatSession, number: int = 1, **fields: Any) -> Message:
    """A question of Ann's, and the answer to it, both part of the history."""
    asked = said(session, state="answered", in_history=True, message_id=f"q{number}")
    usual: dict[str, Any] = {"message_id": f"a{number}", "in_history": True}
    out = answered(asked, **usual | fields)
    Message.objects.filter(pk=asked.pk).update(run=out.run)
    assert out.run
    Run.objects.filter(pk=out.run.pk).update(finished_at=timezone.now())
    return out


def run_of(session: ChatSession) -> Run:
    return Run.objects.get(pk=exchange(session).run_id or 0)


def wish(session: ChatSession, asker: UndoAsker = OWNER, **fields: Any) -> UndoWish:
    return UndoWish(session.pk, asker, TOOLS, **fields)


def steps() -> list[tuple[str, str]]:
    return list(UndoStep.objects.order_by("pk").values_list("kind", "state"))


def test_question_and_answer_leave_the_history_and_stay_on_record(session):
    out = exchange(session)
    digest = {"session": session, "kind": "summary", "created_at": timezone.now()}
    Digest.objects.create(first_run=1, last_run=out.run_id or 0, text="said", **digest)
    plan_undo(wish(session))
    assert not Message.objects.filter(in_history=True).exists()
    assert (Message.objects.count(), Digest.objects.count()) == (2, 0)


def test_the_last_answer_that_is_left_is_meant_and_then_none(session):
    first, second = exchange(session, 1), exchange(session, 2)
    for out in (second, first):
        (pk,) = plan_undo(wish(session))
        assert UndoStep.objects.get(pk=pk).message == out
    with pytest.raises(UndoRefused, match="nothing left"):
        plan_undo(wish(session))


def test_what_was_said_in_another_chat_leaves_the_summary_of_that_chat(session):
    other, out = chat("900"), exchange(session)
    told: dict[str, Any] = {"direction": "out", "state": "delivered", "in_history": True}
    Message.objects.create(
        session=other, run=out.run, message_id="b1", created_at=timezone.now(), **told
    )
    digest = {"session": other, "kind": "summary", "created_at": timezone.now()}
    Digest.objects.create(first_run=1, last_run=out.run_id or 0, text="said", **digest)
    plan_undo(wish(session))
    assert not Digest.objects.exists()


def test_no_quote_shows_what_was_undone_whatever_the_client_says(session):
    out = exchange(session)
    line = {"message_id": "a1", "from_bot": True, "text": "S3CRET"}
    words = fence_values(FenceKind.QUOTED, [line])
    later = said(session, in_history=True, quoted_id="a1", context_text=words)
    plan_undo(wish(session, quoted_id="a1"))
    later.refresh_from_db()
    assert "a1" in (later.context_text or "")
    assert "S3CRET" not in (later.context_text or "")
    found = find_messages(find_address(session), "a1")
    assert found
    assert (found.pk, found.said.is_recalled) == (out.pk, True)
    assert load_segments(session.pk, "a1") == []
    heard = HeardText(later.pk, session.pk, find_address(session), "", words, "a1")
    assert "S3CRET" not in save_heard_texts(heard).context_text


def test_a_question_that_was_undone_is_no_word_of_the_group(session):
    out = exchange(session)
    Message.objects.filter(message_id="q1").update(state="silent")
    plan_undo(wish(session))
    assert find_ambient(AmbientRequest(session.pk, out.pk + 1, 9, 60)) == []


@pytest.mark.parametrize("quoted", ["q1", "a1"])
def test_the_quoted_answer_is_meant_and_so_is_that_to_the_quoted_question(session, quoted):
    out = exchange(session, 1)
    exchange(session, 2)
    (pk,) = plan_undo(wish(session, quoted_id=quoted))
    assert UndoStep.objects.get(pk=pk).message == out
    with pytest.raises(UndoRefused, match="nothing left"):
        plan_undo(wish(session, quoted_id=quoted))


def test_what_another_chat_said_is_not_known(session):
    exchange(chat("800"))
    elsewhere = exchange(chat("900"), 3)
    Message.objects.create(  # of that run, said here
        session=session, direction="out", state="delivered", run=elsewhere.run,
        message_id="foreign", created_at=timezone.now(),
    )  # fmt: skip
    for fields in ({"quoted_id": "a1"}, {"run_pk": elsewhere.run_id}, {"quoted_id": "foreign"}):
        with pytest.raises(UndoRefused, match="not known"):
            plan_undo(wish(session, **fields))
    with pytest.raises(UndoRefused, match="nothing left"):
        plan_undo(wish(session))
    assert not UndoStep.objects.exists()


@pytest.mark.parametrize(
    ("asker", "quoted", "refusal"),
    [
        (BOB, "a1", "Only who asked"),
        (BOB, "", "nothing left"),
        (UndoAsker("", ""), "a1", "Only who asked"),
        (ANN, "a9", "not known"),
    ],
)
def test_strangers_take_nothing_back(session, asker, quoted, refusal):
    exchange(session)
    with pytest.raises(UndoRefused, match=refusal):
        plan_undo(wish(session, asker, quoted_id=quoted))
    assert Message.objects.filter(in_history=True).count() == 2


def test_the_two_minutes_of_the_asker(session):
    exchange(session)
    Run.objects.update(finished_at=timezone.now() - timedelta(seconds=121))
    for quoted in ("", "a1"):
        with pytest.raises(UndoRefused, match="two minutes"):
            plan_undo(wish(session, ANN, quoted_id=quoted))


def test_the_asker_takes_back_words_and_an_owner_the_rest(session):
    out = exchange(session)
    call = call_of(
        step_of(Run.objects.get(pk=out.run_id or 0)),
        "mute_member",
        state_change={"before": {}, "after": {"a": 1}},
    )
    pks = plan_undo(wish(session, ANN))
    assert steps() == [("message", "waiting")]
    assert has_more(pks, TOOLS)
    pks = plan_undo(wish(session))
    assert steps()[1:] == [("call", "waiting"), ("state", "waiting")]
    assert not has_more(pks, TOOLS)
    assert call.pk == UndoStep.objects.get(kind="call").tool_call_id


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"message_id": ""}, "failed"),
        ({"message_id": "", "state": "unknown"}, "failed"),
        ({"recalled_at": timezone.now()}, "done"),
    ],
)
def test_what_cannot_be_recalled_or_was_is_said_at_once(session, fields, state):
    exchange(session, **fields)
    plan_undo(wish(session))
    assert steps() == [("message", state)]


@pytest.mark.parametrize(
    ("tool", "fields", "found"),
    [
        ("mute_member", {}, [("call", "waiting")]),
        ("mute_member", {"state": "unknown"}, [("call", "failed")]),
        ("mute_member", {"state": "failed"}, []),
        ("mute_member", {"mocked": True}, []),
        ("get_weather", {}, []),
    ],
)
def test_calls_are_taken_back_that_were_made(session, tool, fields, found):
    call_of(step_of(run_of(session)), tool, **fields)
    plan_undo(wish(session))
    assert steps()[1:] == found


def test_a_step_is_tried_once_and_its_end_stays(session):
    exchange(session)
    (pk,) = plan_undo(wish(session))
    work = begin_undo_step(pk, "p1")
    assert work
    assert (work.message_id, work.chat.key) == ("a1", "group:700")
    assert begin_undo_step(pk, "p2") is None
    settle_undo_step(pk, UndoOutcome(UndoState.FAILED, "too old\x00"))
    settle_undo_step(pk, UndoOutcome(UndoState.DONE))
    (told,) = load_undo_steps(command=0) or load_undo_steps(run=Run.objects.get().pk)
    assert (told.kind, told.state, told.author) == (UndoKind.MESSAGE, UndoState.FAILED, "1")
    assert told.words.startswith("too old")


def test_a_command_goes_on_after_a_crash_and_what_was_being_tried_is_unknown(session):
    exchange(session, 1)
    exchange(session, 2)
    (pk,) = planned = plan_undo(wish(session, command=77))
    begin_undo_step(pk, "dead")
    assert plan_undo(wish(session, command=77)) == planned
    assert steps() == [("message", "unknown")]


def test_what_an_operator_ordered_is_taken_up_and_what_a_dead_process_tried_is_unknown(session):
    for number in (1, 2):
        exchange(session, number)
    (first,) = plan_undo(wish(session))
    (second,) = plan_undo(wish(session))
    begin_undo_step(first, "dead")
    assert find_left_undo_steps("p1") == [second]
    assert steps() == [("message", "unknown"), ("message", "waiting")]


def test_what_this_process_left_behind_is_unknown_too(session):
    exchange(session)
    (pk,) = plan_undo(wish(session))
    ServerProcess.objects.create(pk="p1", pid=1, last_seen_at=timezone.now())
    begin_undo_step(pk, "p1")
    assert find_left_undo_steps("p2") == []
    assert steps() == [("message", "running")]
    find_left_undo_steps("p1")
    assert steps() == [("message", "unknown")]


@pytest.mark.parametrize("end", ["succeeded", "failed", "unknown"])
def test_the_state_of_the_chat_is_set_back_with_the_claim(session, end):
    ChatSession.objects.update(state={"a": 2, "b": 1})
    change = {"before": {"a": 1}, "after": {"a": 2}}
    call_of(step_of(run_of(session)), "any", state=end, state_change=change)
    *_, pk = plan_undo(wish(session))
    assert begin_undo_step(pk, "p1") is None
    assert steps()[-1] == ("state", "done")
    assert ChatSession.objects.get().state == {"a": 1, "b": 1}


def fetched(chat: ChatAddress) -> list[Any]:
    page = load_message_page(chat, 10)
    return page.messages if page else []


def test_what_was_undone_is_not_fetched_either(session):
    out = exchange(session)
    said(session, merged_into=out.run and out.run.message, state="answered")
    address = find_address(session)
    assert len(fetched(address)) == 3
    plan_undo(wish(session))
    assert fetched(address) == []


def test_what_agents_of_agents_did_is_taken_back(session):
    run = run_of(session)
    for _depth in range(3):
        outer = call_of(step_of(run), "helper")
        run = run_for(parent=outer, session=session, origin="agent")
    call_of(step_of(run), "mute_member")
    plan_undo(wish(session))
    assert steps() == [("message", "waiting"), ("call", "waiting")]


def question(run: Any) -> Approval:
    """What waits for a word because of a call of ``run``."""
    now = timezone.now()
    call, until = call_of(step_of(run), "kick_member", state="pending"), now + timedelta(hours=1)
    return Approval.objects.create(
        call=call, session=run.session, code="123456", created_at=now, expires_at=until
    )


def asking_run(session: ChatSession) -> Run:
    """A run of Ann's that says nothing."""
    return run_for(said(session, state="silent"), finished_at=timezone.now())


@pytest.mark.parametrize("asker", [OWNER, ANN])
def test_a_run_that_only_asks_for_an_approval_is_undone_and_it_cannot_be_given(session, asker):
    row = question(asking_run(session))
    plan_undo(wish(session, asker, command=77))
    (told,) = load_undo_steps(command=77)
    assert (told.kind, told.state, told.author) == ("call", "done", asker.author)
    assert "waited for an approval" in told.words
    reply = parse_approval_reply("批准 123456")
    assert reply
    decided, _ = apply_approval_decision(reply, "10001", "1", is_owner=True)
    assert decided is ApprovalOutcome.UNKNOWN
    row.refresh_from_db()
    assert (row.state, row.decided_by, row.call.state) == ("refused", asker.author, "failed")
    assert (row.call.verdict, row.call.decided_by) == ("withdrawn", asker.author)
    assert not Message.objects.filter(reason="later_result").exists()  # the command says it
    with pytest.raises(UndoRefused, match="nothing left"):
        plan_undo(wish(session, asker))


def test_what_is_withdrawn_is_told_in_its_chat_and_to_who_was_asked(session):
    row = question(run_of(session))
    tell_owners(find_address(session), {"1", "2"}, "May I?", timezone.now(), row.call_id)
    plan_undo(wish(session, UndoAsker("2", reach=UndoReach.EVERYTHING)))
    row.refresh_from_db()
    assert (row.state, row.decided_by) == ("refused", "2")
    (note,) = Message.objects.filter(reason="owner_note", text__contains="123456")
    assert note.sender_id == "1"
    assert Message.objects.get(reason="later_result").tool_call == row.call


@pytest.mark.parametrize("state", ["approved", "refused", "expired"])
def test_what_is_decided_is_not_withdrawn(session, state):
    row = question(asking_run(session))
    Approval.objects.update(state=state, decided_by="2")
    with pytest.raises(UndoRefused, match="nothing left"):
        plan_undo(wish(session))
    row.refresh_from_db()
    assert (row.state, row.decided_by) == (state, "2")


def test_strangers_withdraw_nothing(session):
    row = question(asking_run(session))
    with pytest.raises(UndoRefused, match="nothing left"):
        plan_undo(wish(session, BOB))
    row.refresh_from_db()
    assert row.state == "waiting"


def test_the_act_is_taken_back_with_the_answer_that_told_of_it_later(session):
    call = call_of(step_of(run_of(session)), "mute_member")
    told = said(session, reason="later_result", state="answered", tool_call=call)
    answered(told, message_id="late")
    plan_undo(wish(session))
    assert ("call", "waiting") in steps()
