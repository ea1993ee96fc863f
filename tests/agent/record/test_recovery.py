"""What dead processes left: settled where nothing can be done, taken over by exactly one of the
living where it can."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agent.domain.errors import ClaimLost
from agent.domain.states import FIRST_CLAIM
from agent.domain.types import ChatAddress, Mention
from agent.models import Message, Run, ServerProcess, ToolCall
from agent.record.runs.merged import HeldMessage
from agent.record.runs.replies import mark_replies_sent
from agent.record.runs.runs import StartRun
from agent.record.runs.steps import NewCall, NewStep, record_steps
from agent.record.waiting import recovery
from agent.record.waiting.recovery import (
    LEASE_SECONDS,
    PendingMessage,
    claim_messages,
    is_next_in_session,
    record_heartbeat,
    release_messages,
    remove_processes,
)
from tests.agent.talk import GROUP, PLAN, PRIVATE, accept, begin, beginnings, message, reply

pytestmark = pytest.mark.django_db
State = Message.State


def seen(process_id: str, seconds_ago: float = 0) -> None:
    """A process that showed a sign of life so long ago."""
    at = timezone.now() - timedelta(seconds=seconds_ago)
    ServerProcess.objects.update_or_create(
        pk=process_id, defaults={"host": "h", "pid": 1, "last_seen_at": at}
    )


def waiting(text: str = "hi", process_id: str = "dead", **fields: Any) -> int:
    return accept(message(text, **fields), process_id=process_id)[0].pk


def running(process_id: str = "dead", *calls: str) -> tuple[int, int, list[int]]:
    """A message, its run and the run's tool calls, in the hands of a process."""
    (accepted,) = accept(message(), process_id=process_id)
    (begun,) = begin([StartRun(PLAN, accepted.pk, accepted.session_pk)], process_id)
    asked = tuple(NewCall(name, name, {}, "1") for name in calls)
    ((*pks,),) = record_steps([NewStep(begun.run_pk, 1, [], [], {}, calls=asked)])
    return accepted.pk, begun.run_pk, pks


def outgoing(run_pk: int, state: str, process_id: str = "dead", **fields: Any) -> int:
    wish = StartRun(PLAN, None, Run.objects.get(pk=run_pk).session_id)
    return reply(wish, run_pk, state=state, process_id=process_id, **fields)


def taken(process_id: str = "me", account: str = PRIVATE.account) -> list[PendingMessage]:
    return claim_messages(account, process_id)


def states(model: Any, *pks: int) -> list[str]:
    return [model.objects.get(pk=pk).state for pk in pks]


# --- Signs of life ------------------------------------------------------------------


def test_a_process_is_on_record_while_it_lives_and_leaves_nothing_when_it_ends():
    seen("me", 5)
    first = ServerProcess.objects.get().last_seen_at
    record_heartbeat("me", alone=False)
    assert ServerProcess.objects.get().last_seen_at > first
    remove_processes("me")
    assert not ServerProcess.objects.exists()


def test_a_process_that_was_not_seen_for_the_length_of_a_lease_is_dead():
    seen("late", LEASE_SECONDS + 1)
    seen("alive", LEASE_SECONDS - 5)
    record_heartbeat("me", alone=False)
    assert set(ServerProcess.objects.values_list("pk", flat=True)) == {"me", "alive"}


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_process_whose_clock_is_wrong_takes_nobody_for_dead_and_is_taken_for_dead_by_nobody(
    monkeypatch, hours
):
    record_heartbeat("alive", alone=False)
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(hours=hours))
    record_heartbeat("me", alone=False)
    monkeypatch.undo()
    record_heartbeat("alive", alone=False)
    assert set(ServerProcess.objects.values_list("pk", flat=True)) == {"me", "alive"}


def test_a_process_that_others_took_for_dead_is_told_so_once():
    assert not record_heartbeat("me", alone=False, is_first=True)
    ServerProcess.objects.update(last_seen_at=timezone.now() - timedelta(seconds=LEASE_SECONDS + 1))
    record_heartbeat("other", alone=False)
    assert record_heartbeat("me", alone=False)
    assert not record_heartbeat("me", alone=False)


def test_every_other_process_is_dead_where_only_one_can_be():
    seen("just now")
    record_heartbeat("me", alone=True)
    assert list(ServerProcess.objects.values_list("pk", flat=True)) == ["me"]


# --- What cannot be mended ----------------------------------------------------------


def test_what_a_dead_process_had_on_the_wire_is_unknown_and_may_have_been_heard():
    _, run_pk, _ = running()
    pk = outgoing(run_pk, "sent")
    record_heartbeat("me", alone=True)
    row = Message.objects.get(pk=pk)
    assert (row.state, row.in_history) == ("unknown", True)
    assert row.detail
    assert row.settled_at is not None


def test_an_answer_that_a_dead_process_had_not_sent_still_waits():
    _, run_pk, _ = running()
    pk = outgoing(run_pk, "pending")
    record_heartbeat("me", alone=True)
    assert states(Message, pk) == ["pending"]


def test_an_answer_of_a_dead_process_that_a_living_one_sends_is_not_taken_for_lost():
    _, run_pk, _ = running()
    pk = outgoing(run_pk, "pending")
    record_heartbeat("me", alone=True)
    mark_replies_sent([(pk, "again", "me")])
    record_heartbeat("me", alone=True)
    assert states(Message, pk) == ["sent"]


def test_a_tools_message_that_a_dead_process_had_not_sent_will_never_be_and_says_so():
    _, run_pk, (call,) = running("dead", "send_message")
    pk = outgoing(run_pk, "pending", tool_call_pk=call)
    record_heartbeat("me", alone=True)
    assert states(Message, pk) == ["failed"]


def test_the_runs_of_a_dead_process_are_interrupted_and_what_they_did_is_unknown():
    _, run_pk, calls = running("dead", "f", "g")
    record_heartbeat("me", alone=True)
    assert states(Run, run_pk) == ["interrupted"]
    assert states(ToolCall, *calls) == ["unknown", "waiting"]


def test_what_is_in_living_hands_is_left_alone():
    seen("alive")
    _, run_pk, calls = running("alive", "f")
    pk = outgoing(run_pk, "sent", "alive")
    record_heartbeat("me", alone=False)
    assert (states(Run, run_pk), states(ToolCall, *calls), states(Message, pk)) == (
        ["running"],
        ["running"],
        ["sent"],
    )
    assert taken() == []


# --- Taking over --------------------------------------------------------------------


def test_what_waits_in_dead_hands_is_taken_over_oldest_first():
    first, second, third = waiting("a"), running()[0], waiting("b")
    assert [left.pk for left in taken()] == [first, second, third]
    assert set(Message.objects.values_list("claimed_by", flat=True)) == {"me"}


@pytest.mark.parametrize("mentioned", [GROUP.account, "999"])
def test_a_command_that_is_taken_over_still_says_whether_the_bot_was_mentioned(mentioned):
    at = {"type": "at", "data": {"qq": mentioned}}
    waiting("/help", chat=GROUP, segments=[at], mentions_bot=True)
    Message.objects.update(reason=Message.Reason.COMMAND)
    (found,) = taken(account=GROUP.account)
    assert found.message.mentions_bot is (mentioned == GROUP.account)


def test_what_was_taken_over_is_not_taken_again():
    waiting()
    seen("me")
    assert len(taken("me")) == 1
    assert taken("me") == taken("other") == []


def test_only_the_messages_of_one_account_are_taken():
    mine = waiting()
    waiting(chat=ChatAddress("10002", "private", "20001"))
    assert [left.pk for left in taken()] == [mine]
    assert len(taken(account="10002")) == 1


def test_what_is_settled_is_not_taken():
    for state in (State.ANSWERED, State.FAILED, State.EXPIRED, State.RECORDED, State.SILENT):
        Message.objects.filter(pk=waiting(str(state))).update(state=state)
    assert taken() == []


def test_a_message_comes_back_as_it_was_received():
    said = message(
        "hi",
        GROUP,
        mentions_bot=True,
        message_id="7",
        sender_role="admin",
        temp_group_id="9",
        chat_title="G",
        quoted_id="-5",
        mentions=(Mention("20002", "Bob"),),
    )
    accept(said, process_id="dead")
    (left,) = taken()
    back = left.message
    for name in (
        "chat",
        "text",
        "sender_id",
        "sender_name",
        "sender_role",
        "message_id",
        "temp_group_id",
        "chat_title",
        "happened_at",
        "quoted_id",
        "mentions",
    ):
        assert getattr(back, name) == getattr(said, name), name
    mentioned = {"user_id": "20002", "name": "Bob"}
    assert back.header == {"chat_name": "G", "mentions": [mentioned]}


def test_many_are_taken_over_in_several_transactions_the_oldest_first(monkeypatch):
    monkeypatch.setattr(recovery, "CLAIMS_AT_ONCE", 2)
    pks = [waiting(text) for text in "abc"]
    assert [[left.pk for left in taken()] for _ in range(3)] == [pks[:2], pks[2:], []]


# --- Giving back --------------------------------------------------------------------


def test_a_message_that_is_given_back_waits_in_nobodys_hands():
    pk, run_pk, calls = running("me", "f")
    seen("me")
    release_messages([HeldMessage(pk, FIRST_CLAIM)])
    row = Message.objects.get(pk=pk)
    assert (row.state, row.claimed_by) == ("waiting", "")
    assert (states(Run, run_pk), states(ToolCall, *calls)) == (["interrupted"], ["unknown"])
    assert [left.pk for left in taken("other")] == [pk]


def test_many_messages_are_given_back_with_as_many_statements_as_two():
    """A process that ends has hundreds in hand, and what comes in meanwhile waits for it."""
    counts = []
    for many in (2, 40):
        held = [HeldMessage(running("me")[0], FIRST_CLAIM) for _ in range(many)]
        with CaptureQueriesContext(connection) as asked:
            assert release_messages(held) == [True] * many
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_what_a_process_took_after_it_was_taken_for_dead_is_its_no_longer():
    """It does not know yet, and goes on: its messages are claimed from it with their runs."""
    seen("me")
    pk, run_pk, _ = running("dead")
    theirs = Run.objects.get(pk=run_pk).claim_number
    (claimed,) = taken()
    assert (claimed.pk, claimed.was_cut_off) == (pk, True)
    run = Run.objects.get(pk=run_pk)
    assert (run.state, run.claim_number != theirs) == ("interrupted", True)


def test_a_message_that_has_its_end_is_not_begun_again():
    (accepted,) = accept(message(), process_id="me")
    Message.objects.filter(pk=accepted.pk).update(state=State.ANSWERED)
    wish = StartRun(PLAN, accepted.pk, accepted.session_pk)
    (lost,) = beginnings("me").begin_runs([wish])
    assert isinstance(lost, ClaimLost)
    assert states(Message, accepted.pk) == ["answered"]


def test_many_messages_are_claimed_with_as_many_statements_as_two():
    """A process that was killed may leave thousands, while others wait for the record."""
    counts = []
    for many in (2, 40):
        left = [running()[0] for _ in range(many)]
        with CaptureQueriesContext(connection) as asked:
            assert [one.pk for one in taken()] == left
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_a_message_that_came_to_its_end_meanwhile_is_not_given_back():
    pk, _, _ = running("me")
    Message.objects.filter(pk=pk).update(state=State.ANSWERED)
    release_messages([HeldMessage(pk, FIRST_CLAIM)])
    assert states(Message, pk) == ["answered"]


# --- Whose turn it is ---------------------------------------------------------------


def test_a_message_is_next_when_all_before_it_in_its_chat_are_settled():
    (first,) = accept(message("a"))
    (second,) = accept(message("b"))
    (elsewhere,) = accept(message("c", GROUP, mentions_bot=True))
    places = [(one.pk, one.session_pk) for one in (first, second, elsewhere)]
    assert [is_next_in_session(*place) for place in places] == [True, False, True]
    Message.objects.filter(pk=first.pk).update(state=State.ANSWERED)
    assert [is_next_in_session(*place) for place in places] == [True, True, True]


def test_a_process_that_was_away_itself_does_not_judge_others_before_it_has_renewed_its_lease():
    seen("me", LEASE_SECONDS + 1)
    seen("other", LEASE_SECONDS + 1)
    assert not record_heartbeat("me", alone=False)
    assert set(ServerProcess.objects.values_list("pk", flat=True)) == {"me", "other"}
    record_heartbeat("me", alone=False)
    assert list(ServerProcess.objects.values_list("pk", flat=True)) == ["me"]


def test_a_process_that_was_taken_for_dead_learns_so_and_has_nothing_in_hand():
    pk, run_pk, calls = running("me", "f")
    seen("other")
    assert record_heartbeat("me", alone=False)
    assert (states(Run, run_pk), states(ToolCall, *calls)) == (["interrupted"], ["unknown"])
    assert [left.pk for left in taken("other")] == [pk]


def test_a_claim_that_was_given_back_or_taken_over_cannot_be_given_back_again():
    pk, _, _ = running("me", "f")
    assert release_messages([HeldMessage(pk, FIRST_CLAIM)]) == [True]
    (left,) = taken("other")
    assert left.claim_number > FIRST_CLAIM
    assert release_messages([HeldMessage(pk, FIRST_CLAIM)]) == [False]
    assert Message.objects.get(pk=pk).claimed_by == "other"


def test_a_message_in_the_record_of_another_chat_is_not_answered_there():
    pk = waiting("secret")
    (elsewhere,) = accept(message("hi", GROUP, mentions_bot=True), process_id="alive")
    seen("alive")
    Message.objects.filter(pk=pk).update(session_id=elsewhere.session_pk)
    assert taken() == []
    row = Message.objects.get(pk=pk)
    assert (row.state, bool(row.detail)) == ("failed", True)
