"""Questions to the owners on record: asked once, decided once, and closed when nobody answers."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent.domain.approvals import ApprovalReply
from agent.models import Approval, ChatSession, Message, Run, Step, ToolCall
from agent.record.chats import early_ids
from agent.record.chats.own_messages import find_quoted_own
from agent.record.runs import deferred_calls
from agent.record.runs.steps import CallOutcome
from agent.record.waiting import approvals, recovery
from agent.record.waiting.approvals import ApprovalOutcome, ApprovalRequest
from tests.admin.record import call_of, chat, run_for, said, step_of
from tests.agent.talk import message
from tools.models import ToolConfig

pytestmark = pytest.mark.django_db
ACCOUNT = "10001"


@pytest.fixture
def session() -> ChatSession:
    return chat(account=ACCOUNT)


def called(session: ChatSession, tool: str = "transfer", **fields: Any) -> ToolCall:
    """A call that is under way in a run of ``session``."""
    usual: dict[str, Any] = {"state": "running", "requested_by": "20001"}
    return call_of(step_of(run_for(said(session, state="running"))), tool, **usual | fields)


def ask(call: ToolCall, **arguments: Any) -> approvals.RecordedQuestion | None:
    assert call.run.session_id
    return approvals.record_questions(ApprovalRequest(call.pk, call.run.session_id, arguments))


def waiting(session: ChatSession, **arguments: Any) -> Approval:
    call = called(session)
    ask(call, **arguments)
    deferred_calls.suspend_calls(deferred_calls.CallSuspension(call.pk, "samples", "wait"))
    return Approval.objects.get(call=call)


def rule(
    approval: Approval,
    word: ApprovalReply | None = None,
    *,
    account: str = ACCOUNT,
    is_owner: bool = True,
) -> ApprovalOutcome:
    word = word or ApprovalReply(True, approval.code)
    return approvals.apply_approval_decision(word, account, "666", is_owner)[0]


def told(session: ChatSession) -> list[Message]:
    return list(Message.objects.filter(session=session, reason="later_result"))


def test_an_approval_is_work_for_the_inbox_once(session):
    approval = waiting(session, amount=5)
    assert [rule(approval) for _ in range(2)] == [ApprovalOutcome.APPROVED, ApprovalOutcome.UNKNOWN]
    (message,) = told(session)
    assert (message.state, message.sender_id, message.tool_call_id) == (
        "waiting",
        "20001",
        approval.call_id,
    )
    approval.refresh_from_db()
    assert (approval.state, approval.decided_by) == ("approved", "666")


def test_a_refused_call_has_ended_and_can_no_longer_be_approved(session):
    approval = waiting(session)
    assert rule(approval, ApprovalReply(False, approval.code)) is ApprovalOutcome.REFUSED
    assert (
        approvals.settle_approval(approval.pk, is_approval=True, by="admin")
        is ApprovalOutcome.UNKNOWN
    )
    call = ToolCall.objects.get(pk=approval.call_id)
    assert (call.state, call.result) == ("failed", approvals.REFUSED)
    assert len(told(session)) == 1


def test_what_has_expired_is_closed_before_anybody_looks(session):
    approval = waiting(session)
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert rule(approval) is ApprovalOutcome.UNKNOWN
    assert (approvals.expire_approvals(), approvals.expire_approvals()) == (1, 0)
    assert ToolCall.objects.get(pk=approval.call_id).result == approvals.EXPIRED
    assert len(told(session)) == 1


def test_a_stranger_and_an_owner_of_another_account_decide_nothing(session):
    approval = waiting(session)
    assert rule(approval, is_owner=False) is ApprovalOutcome.NOT_AN_OWNER
    assert rule(approval, account="10002") is ApprovalOutcome.UNKNOWN
    approval.refresh_from_db()
    assert approval.state == "waiting"


def test_changed_arguments_are_checked_and_are_those_of_the_call(session):
    schema = {
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "additionalProperties": False,
    }
    ToolConfig.objects.create(name="transfer", declaration={"parameters_schema": schema})
    approval = waiting(session, amount=500)
    assert rule(approval, ApprovalReply(True, approval.code, {"sum": 5})) is ApprovalOutcome.INVALID
    assert (
        rule(approval, ApprovalReply(True, approval.code, {"amount": 5}))
        is ApprovalOutcome.APPROVED
    )
    approval.refresh_from_db()
    assert (approval.arguments, approval.changed_arguments) == ({"amount": 500}, {"amount": 5})
    assert ToolCall.objects.get(pk=approval.call_id).arguments == {"amount": 5}


def test_the_same_question_of_the_same_person_is_asked_once(session):
    first = waiting(session, amount=5)
    again, other, stranger = (
        ask(called(session), amount=5),
        ask(called(session), amount=6),
        ask(called(session, requested_by="3"), amount=5),
    )
    assert again == approvals.RecordedQuestion(first.code, is_new=False)
    assert other
    assert stranger
    assert other.is_new
    assert stranger.is_new


def test_a_chat_has_so_many_questions_and_no_more(session):
    for amount in range(approvals.CHAT_LIMIT):
        waiting(session, amount=amount)
    assert ask(called(session), amount=-1) is None
    assert ask(called(chat("701")), amount=-1)


def test_a_call_that_is_told_of_later_keeps_the_reasoning_behind_it(session):
    approval = waiting(session)
    Step.objects.update(response={"reasoning_content": "I owe it."})
    rule(approval)
    call = deferred_calls.find_deferred_call(told(session)[0].pk, resumed=False)
    assert call
    assert call.reasoning == "I owe it."
    Step.objects.update(response={"reasoning_content": None})
    call = deferred_calls.find_deferred_call(told(session)[0].pk, resumed=False)
    assert call
    assert call.reasoning is None


def test_an_approved_call_is_to_be_made_until_it_began(session):
    approval = waiting(session)
    rule(approval)
    (message,) = told(session)
    call = deferred_calls.find_deferred_call(message.pk, resumed=True)
    assert call
    assert call.is_to_be_made
    ToolCall.objects.update(state="running")
    begun = deferred_calls.find_deferred_call(message.pk, resumed=True)
    assert begun
    assert (begun.is_to_be_made, begun.text) == (False, deferred_calls.INTERRUPTED)


def test_only_codes_that_wait_in_the_account_are_words(session):
    approval = waiting(session)
    assert approvals.waiting_codes(ACCOUNT, {approval.code, "000000"}) == {approval.code}
    assert approvals.waiting_codes("10002", {approval.code}) == set()


# --- Long-running calls -----------------------------------------------------------


def suspended(session: ChatSession, worker: str) -> ToolCall:
    call = called(session, "render")
    deferred_calls.suspend_calls(deferred_calls.CallSuspension(call.pk, "samples", "wait", worker))
    return call


def ended(call: ToolCall, text: str = "done") -> bool:
    outcome = CallOutcome(call.pk, ToolCall.State.SUCCEEDED, "samples", False, text, None, "", 1)
    return deferred_calls.complete_calls(deferred_calls.CallCompletion(outcome))


def test_an_outcome_is_told_once_and_the_first_counts(session):
    call = suspended(session, "p1")
    assert [ended(call, "first"), ended(call, "second")] == [True, False]
    call.refresh_from_db()
    assert (call.state, call.result, len(told(session))) == ("succeeded", "first", 1)


def test_an_outcome_that_came_before_its_run_went_on_is_kept(session):
    call = called(session, "render")
    ended(call, "early")
    deferred_calls.suspend_calls(deferred_calls.CallSuspension(call.pk, "samples", "wait", "p1"))
    call.refresh_from_db()
    assert (call.state, call.result) == ("succeeded", "early")


def test_the_calls_of_a_dead_process_are_given_up_and_those_of_others_are_not(session):
    mine, theirs, outside = (
        suspended(session, "alive"),
        suspended(session, "dead"),
        suspended(session, ""),
    )
    recovery.record_heartbeat("alive", alone=True, is_first=True)
    states = dict(ToolCall.objects.values_list("pk", "state"))
    assert [states[call.pk] for call in (mine, theirs, outside)] == [
        "pending",
        "unknown",
        "pending",
    ]
    assert [message.tool_call_id for message in told(session)] == [theirs.pk]


def test_progress_is_kept_and_told_only_while_the_chat_waits_for_it(session):
    call = called(session, "render")
    deferred_calls.record_progress(deferred_calls.ProgressReport(call.pk, "10%", 0))
    assert told(session) == []
    deferred_calls.suspend_calls(deferred_calls.CallSuspension(call.pk, "samples", "wait", "p1"))
    deferred_calls.record_progress(deferred_calls.ProgressReport(call.pk, "20%"))
    deferred_calls.record_progress(deferred_calls.ProgressReport(call.pk, "30%", 1))
    (message,) = told(session)
    found = deferred_calls.find_deferred_call(message.pk, resumed=False)
    assert found
    assert (found.text, found.is_stale) == ("仍在执行: 30%", False)
    ended(call)
    stale = deferred_calls.find_deferred_call(message.pk, resumed=False)
    assert stale
    assert stale.is_stale


def test_a_crash_right_after_the_question_leaves_a_call_that_waits(session):
    call = called(session)
    Run.objects.update(state="running", claimed_by="dead")
    ask(call, amount=5)
    recovery.record_heartbeat("next", alone=True)
    call.refresh_from_db()
    assert (call.state, "尚未执行" in call.result) == ("pending", True)


# --- How many questions ---------------------------------------------------------------


def many(session: ChatSession, number: int) -> list[approvals.RecordedQuestion | None]:
    return [ask(called(session), amount=amount) for amount in range(number)]


def test_only_the_first_questions_of_a_while_mention_the_owners(session):
    assert [one and one.is_loud for one in many(session, approvals.MENTIONING + 2)] == [
        True
    ] * approvals.MENTIONING + [False] * 2
    Approval.objects.update(created_at=timezone.now() - approvals.WHILE)
    asked = ask(called(session), amount=-1)
    assert asked
    assert asked.is_loud
    elsewhere = ask(called(chat(account="10002")), amount=1)
    assert elsewhere
    assert elsewhere.is_loud


def test_refused_questions_cannot_be_replaced_without_end(session):
    many(session, approvals.CHAT_LIMIT)
    for approval in Approval.objects.all():
        rule(approval, ApprovalReply(False, approval.code))
    assert ask(called(session), amount=-1) is None
    Approval.objects.update(created_at=timezone.now() - approvals.WHILE)
    assert ask(called(session), amount=-1) is not None


def test_a_quote_in_the_moment_of_the_confirmation_decides(session):
    """The client has told the id of the question, and it is not on record yet."""
    approval = waiting(session)
    Message.objects.create(
        session=session,
        direction="out",
        state="sent",
        echo="e-1",
        text=f"批准 {approval.code}？",
        tool_call=approval.call,
        created_at=timezone.now(),
    )
    quote = message("[回复:771] 批准", quoted_id="771", message_id="772")
    assert approvals.read_approval_reply(quote, session.pk) is None
    early_ids.remember(ACCOUNT, "771", "e-1")
    word = approvals.read_approval_reply(quote, session.pk)
    assert word == ApprovalReply(True, approval.code)
    assert find_quoted_own([quote], [session.pk]) == {(session.pk, "771")}
    assert find_quoted_own([quote], [session.pk + 1]) == set()
