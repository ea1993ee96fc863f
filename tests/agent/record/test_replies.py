"""Outgoing messages on record: before they are sent, what became of them, and what a late answer
corrects."""

from typing import Any

import pytest

from agent.domain.types import Delivery
from agent.models import Message, Run, Step
from agent.record.runs.replies import (
    RunCompletion,
    SendResult,
    complete_runs,
    correct_send_result,
    mark_replies_sent,
    record_send_results,
)
from agent.record.runs.runs import StartRun
from agent.record.runs.steps import NewStep
from tests.agent.talk import PLAN, PROCESS, accept, begin, message, reply

pytestmark = pytest.mark.django_db
State = Message.State


@pytest.fixture
def wish() -> StartRun:
    (accepted,) = accept(message())
    return StartRun(PLAN, accepted.pk, accepted.session_pk)


@pytest.fixture
def run_pk(wish: StartRun) -> int:
    return begin([wish])[0].run_pk


def row(pk: int | None) -> Message:
    assert pk is not None
    return Message.objects.get(pk=pk)


def outcome(
    pk: int, state: str, error: str = "", message_id: str = "", **fields: Any
) -> SendResult:
    return SendResult(pk, Delivery(State(state), message_id, error), **fields)


# --- Going out ----------------------------------------------------------------------


def test_a_reply_is_on_record_before_it_is_sent(wish, run_pk):
    stored = row(reply(wish, run_pk, temp_group_id="7"))
    assert (stored.direction, stored.state, stored.text, stored.segments) == (
        "out",
        "sent",
        "hello",
        [{"type": "text"}],
    )
    assert (stored.echo, stored.run_id, stored.temp_group_id, stored.claimed_by) == (
        "e-hello",
        run_pk,
        "7",
        PROCESS,
    )
    assert (stored.in_history, stored.settled_at) == (False, None)


def test_the_model_call_it_came_from_is_recorded_with_it(wish, run_pk):
    reply(
        wish,
        run_pk,
        step=NewStep(run_pk, 1, [{"role": "user", "content": "hi"}], [], {"content": "hello"}),
    )
    assert Step.objects.get(run=run_pk).response == {"content": "hello"}


def test_a_pending_reply_goes_out_under_a_new_echo(wish, run_pk):
    pk = reply(wish, run_pk, state="pending")
    mark_replies_sent([(pk, "e2", "me")])
    assert (row(pk).state, row(pk).echo, row(pk).claimed_by) == ("sent", "e2", "me")


# --- What became of it --------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "in_history"), [("delivered", True), ("unknown", True), ("failed", False)]
)
def test_what_was_heard_or_may_have_been_is_part_of_the_conversation(
    wish, run_pk, state, in_history
):
    pk = reply(wish, run_pk)
    record_send_results([outcome(pk, state, "why", "4711")])
    stored = row(pk)
    assert (stored.state, stored.detail, stored.message_id, stored.in_history) == (
        state,
        "why",
        "4711",
        in_history,
    )
    assert stored.settled_at is not None


def test_an_apology_is_no_part_of_the_conversation(wish, run_pk):
    pk = reply(wish, run_pk)
    record_send_results([outcome(pk, "delivered", is_speech=False)])
    assert not row(pk).in_history


def test_several_outcomes_in_one_commit_reach_their_own_rows(wish, run_pk):
    pks = [reply(wish, run_pk, f"m{number}") for number in range(3)]
    record_send_results(
        [
            outcome(pk, state)
            for pk, state in zip(pks, ("delivered", "failed", "unknown"), strict=True)
        ]
    )
    assert [row(pk).state for pk in pks] == ["delivered", "failed", "unknown"]


def test_an_id_that_is_longer_than_its_column_is_cut(wish, run_pk):
    pk = reply(wish, run_pk)
    record_send_results([outcome(pk, "delivered", message_id="9" * 500)])
    assert row(pk).message_id == "9" * 128


# --- Late answers -------------------------------------------------------------------


@pytest.mark.parametrize("state", ["unknown", "sent"])
@pytest.mark.parametrize(("late", "in_history"), [("delivered", True), ("failed", False)])
def test_a_late_answer_settles_what_was_unknown(wish, run_pk, state, late, in_history):
    pk = reply(wish, run_pk)
    Message.objects.filter(pk=pk).update(state=state, in_history=True)
    assert correct_send_result("10001", "e-hello", Delivery(State(late), "7", "why")) is True
    stored = row(pk)
    assert (stored.state, stored.message_id, stored.detail, stored.in_history) == (
        late,
        "7",
        "why",
        in_history,
    )


@pytest.mark.parametrize("state", ["delivered", "failed", "pending"])
def test_what_is_known_already_is_not_changed_by_a_late_answer(wish, run_pk, state):
    pk = reply(wish, run_pk)
    Message.objects.filter(pk=pk).update(state=state)
    assert correct_send_result("10001", "e-hello", Delivery(State.DELIVERED, "7")) is False
    assert (row(pk).state, row(pk).message_id) == (state, "")


@pytest.mark.parametrize(
    ("account", "echo"), [("10002", "e-hello"), ("10001", "e9"), ("10001", "")]
)
def test_an_answer_of_another_account_or_to_something_else_changes_nothing(
    wish, run_pk, account, echo
):
    pk = reply(wish, run_pk)
    assert correct_send_result(account, echo, Delivery(State.DELIVERED)) is False
    assert row(pk).state == "sent"


# --- The end of a run ---------------------------------------------------------------


def test_the_end_settles_run_message_and_answer_together(wish, run_pk):
    pk = reply(wish, run_pk)
    ending = RunCompletion(
        run_pk,
        Run.State.FINISHED,
        wish.message_pk,
        State.ANSWERED,
        final_text="hello",
        model_calls=2,
        input_tokens=30,
        output_tokens=4,
        outcome=outcome(pk, "delivered"),
        in_history=True,
    )
    complete_runs([ending])
    run, asked = Run.objects.get(pk=run_pk), row(wish.message_pk)
    assert (run.state, run.final_text, run.model_calls, run.input_tokens, run.output_tokens) == (
        "finished",
        "hello",
        2,
        30,
        4,
    )
    assert (asked.state, asked.run_id, asked.in_history) == ("answered", run_pk, True)
    assert row(pk).state == "delivered"
    assert None not in (run.finished_at, asked.settled_at)


def test_what_two_processes_spent_on_one_run_is_added_up(wish, run_pk):
    for calls in (1, 2):
        complete_runs(
            [
                RunCompletion(
                    run_pk,
                    Run.State.FINISHED,
                    wish.message_pk,
                    State.ANSWERED,
                    model_calls=calls,
                    input_tokens=10,
                )
            ]
        )
    run = Run.objects.get(pk=run_pk)
    assert (run.model_calls, run.input_tokens) == (3, 20)


def test_a_silent_end_brings_its_last_model_call_along(wish, run_pk):
    step = NewStep(run_pk, 1, [], [], {"content": ""})
    complete_runs(
        [RunCompletion(run_pk, Run.State.FINISHED, wish.message_pk, State.SILENT, step=step)]
    )
    assert Step.objects.get(run=run_pk).number == 1
    assert (row(wish.message_pk).state, row(wish.message_pk).in_history) == ("silent", False)


def test_a_failure_is_told_with_its_reason(wish, run_pk):
    complete_runs(
        [
            RunCompletion(
                run_pk,
                Run.State.FAILED,
                wish.message_pk,
                State.FAILED,
                detail="no model",
                error="no model",
            )
        ]
    )
    assert (row(wish.message_pk).state, row(wish.message_pk).detail) == ("failed", "no model")
    assert Run.objects.get(pk=run_pk).error == "no model"


def test_a_run_without_a_message_ends_alone():
    (begun,) = begin([StartRun(PLAN)])
    complete_runs([RunCompletion(begun.run_pk, Run.State.FINISHED, final_text="x")])
    assert Run.objects.get(pk=begun.run_pk).final_text == "x"
