"""Runs on record: what a new one is shown of the past, and what is left of one that was broken
off."""

from typing import Any

import pytest

from agent.domain.types import Delivery
from agent.llm.requests.messages import strip_frame
from agent.models import Message, Run, Step, ToolCall
from agent.record.runs.replies import RunCompletion, SendResult, complete_runs
from agent.record.runs.runs import ActiveRun, RunPlan, RunStarter, StartRun
from agent.record.runs.steps import (
    CallOutcome,
    NewCall,
    NewStep,
    finish_calls,
    record_steps,
    start_calls,
)
from agent.record.settings.snapshot import Settings
from agent.record.waiting.approvals import ApprovalRequest, record_questions
from tests.agent.talk import GROUP, PLAN, PROCESS, accept, begin, message, reply
from tools.models import ToolConfig

pytestmark = pytest.mark.django_db


def begun(
    text: str = "hi", *, process_id: str = PROCESS, plan: RunPlan = PLAN, **fields: Any
) -> tuple[ActiveRun, StartRun]:
    """A run for a new message, and the wish that began it."""
    (accepted,) = accept(message(text, **fields))
    wish = StartRun(plan, accepted.pk, accepted.session_pk)
    return begin([wish], process_id)[0], wish


def again(wish: StartRun, process_id: str = "p2") -> ActiveRun:
    """The run of ``wish``, taken up by another process."""
    return begin([StartRun(wish.plan, wish.message_pk, wish.session_pk, resumed=True)], process_id)[
        0
    ]


def step(run: ActiveRun, number: int = 1, *names: str, **fields: Any) -> NewStep:
    calls = tuple(NewCall(f"c{place}", name, {}, "20001") for place, name in enumerate(names))
    usual: dict[str, Any] = {
        "request": [{"role": "user", "content": f"r{number}"}],
        "tools": ["f"],
        "response": {"content": "x"},
    }
    return NewStep(run.run_pk, number, calls=calls, **usual | fields)


def answered(text: str, answer: str, state: str = "delivered", *, in_history: bool = True) -> None:
    """An exchange of the past: a message, and the final answer to it."""
    run, wish = begun(text)
    outcome = SendResult(reply(wish, run.run_pk, answer), Delivery(Message.State(state)))
    complete_runs(
        [
            RunCompletion(
                run.run_pk,
                Run.State.FINISHED,
                wish.message_pk,
                Message.State.ANSWERED,
                outcome=outcome,
                in_history=in_history,
            )
        ]
    )


def incoming(wish: StartRun) -> Message:
    assert wish.message_pk is not None
    return Message.objects.get(pk=wish.message_pk)


def said(run: ActiveRun) -> list[str]:
    return [strip_frame(one["content"]) for one in run.history]


# --- Beginning ----------------------------------------------------------------------


def test_a_message_whose_run_begins_is_running_in_the_hands_of_its_process():
    run, wish = begun()
    row = incoming(wish)
    assert (row.state, row.claimed_by) == ("running", PROCESS)
    assert Run.objects.get(pk=run.run_pk).message_id == wish.message_pk


def test_a_run_without_a_chat_has_neither_message_nor_history():
    (run,) = begin([StartRun(RunPlan(Run.Origin.HTTP, "m"))])
    row = Run.objects.get(pk=run.run_pk)
    assert (row.message, row.session, row.origin, run.history) == (None, None, "http", [])


def test_runs_that_begin_together_belong_to_their_own_messages():
    accepted = accept(message("a"), message("b", GROUP, mentions_bot=True))
    wishes = [StartRun(PLAN, one.pk, one.session_pk) for one in accepted]
    runs = begin(wishes)
    assert [Run.objects.get(pk=run.run_pk).message_id for run in runs] == [
        one.pk for one in accepted
    ]


# --- History ------------------------------------------------------------------------


def test_the_history_is_what_was_answered_and_the_answers_oldest_first():
    answered("q1", "a1")
    answered("q2", "a2")
    run, _ = begun("now")
    assert said(run) == ["q1", "a1", "q2", "a2"]
    assert [one["role"] for one in run.history] == ["user", "assistant"] * 2


def test_the_history_holds_no_more_than_the_persona_takes_and_the_newest_of_it(settings):
    for number in range(4):
        answered(f"q{number}", f"a{number}")
    settings.MAX_CONTEXT_MESSAGES = 5
    assert said(begun()[0]) == ["q3", "a3"]
    settings.MAX_CONTEXT_MESSAGES = 2
    assert said(begun()[0]) == []


def test_what_was_not_answered_or_not_heard_is_no_history():
    accept(message("overheard", GROUP))
    answered("q1", "refused", "failed", in_history=False)
    answered("q2", "perhaps heard", "unknown")
    assert said(begun("now")[0]) == ["q2", "perhaps heard"]


def test_the_history_of_another_chat_is_not_shown():
    answered("secret", "yes")
    assert begun("hi", chat=GROUP, mentions_bot=True)[0].history == []


def test_messages_sent_by_tools_are_history_in_the_order_they_were_sent():
    run, wish = begun("q")
    ((call,),) = record_steps([step(run, 1, "send_message")])
    wait, done = reply(wish, run.run_pk, "wait", tool_call_pk=call), reply(wish, run.run_pk, "done")
    heard = Delivery(Message.State.DELIVERED)
    Message.objects.filter(pk=wait).update(in_history=True)
    complete_runs(
        [
            RunCompletion(
                run.run_pk,
                Run.State.FINISHED,
                wish.message_pk,
                Message.State.ANSWERED,
                outcome=SendResult(done, heard),
                in_history=True,
            )
        ]
    )
    assert said(begun("now")[0]) == ["q", "wait", "done"]


# --- Settings -----------------------------------------------------------------------


def test_tool_settings_are_as_new_as_the_beginning_of_the_run(django_capture_on_commit_callbacks):
    changes: list[Settings] = []
    store = RunStarter(PROCESS)
    store.live.subscribe(lambda _, new: changes.append(new), "tools")
    for value in ("rain", "snow"):
        ToolConfig.objects.update_or_create(name="f", defaults={"mock_value": value})
        with django_capture_on_commit_callbacks(execute=True):
            store.begin_runs([StartRun(RunPlan(Run.Origin.HTTP, "m"))])
        assert store.live.current.tools["f"].mock_value == value
    store.begin_runs([StartRun(RunPlan(Run.Origin.HTTP, "m"))])
    assert len(changes) == 2


# --- Steps and calls ----------------------------------------------------------------


def test_a_step_is_stored_with_its_calls_the_first_of_which_has_begun():
    run, _ = begun()
    ((first, second),) = record_steps([step(run, 1, "f", "g", input_tokens=3, latency_ms=9)])
    stored = Step.objects.get()
    assert (stored.run_id, stored.number, stored.input_tokens, stored.latency_ms, stored.tools) == (
        run.run_pk,
        1,
        3,
        9,
        ["f"],
    )
    states = [
        (call.pk, call.tool_name, call.position, call.state)
        for call in ToolCall.objects.order_by("pk")
    ]
    assert states == [(first, "f", 0, "running"), (second, "g", 1, "waiting")]


def test_steps_of_different_runs_keep_their_own_calls():
    runs = [begun(text)[0] for text in ("a", "b", "c")]
    keys = record_steps([step(runs[0], 1, "f", "g"), step(runs[1]), step(runs[2], 1, "h")])
    assert [len(of_step) for of_step in keys] == [2, 0, 1]
    assert [ToolCall.objects.get(pk=pk).run_id for of_step in keys for pk in of_step] == [
        runs[0].run_pk
    ] * 2 + [runs[2].run_pk]


def test_the_end_of_a_call_is_the_beginning_of_the_next():
    run, _ = begun()
    ((first, second),) = record_steps([step(run, 1, "f", "g")])
    outcome = CallOutcome(
        first, ToolCall.State.SUCCEEDED, "samples", True, "25°C", {"t": 25}, "", 12, next_pk=second
    )
    finish_calls([outcome])
    done, begun_now = ToolCall.objects.get(pk=first), ToolCall.objects.get(pk=second)
    assert (done.state, done.provider_name, done.mocked, done.result) == (
        "succeeded",
        "samples",
        True,
        "25°C",
    )
    assert (done.structured_content, done.duration_ms) == ({"t": 25}, 12)
    assert begun_now.state == "running"


def test_a_waiting_call_can_be_begun():
    run, _ = begun()
    ((_, second),) = record_steps([step(run, 1, "f", "g")])
    start_calls([second])
    assert ToolCall.objects.get(pk=second).state == "running"


@pytest.mark.parametrize("name", ["", "x" * 500])
def test_names_that_only_a_model_would_write_are_stored(name):
    run, _ = begun()
    call = NewCall("i" * 500, name, "not json", "20001")
    record_steps([NewStep(run.run_pk, 1, [], [], {}, finish_reason="r" * 500, calls=(call,))])
    assert ToolCall.objects.get().tool_name == name[:128]


# --- Taking up ----------------------------------------------------------------------


def test_a_run_that_was_broken_off_is_taken_up_and_not_begun_again():
    run, wish = begun()
    taken = again(wish)
    assert taken.run_pk == run.run_pk
    row = Run.objects.get()
    assert (row.state, row.claimed_by) == ("running", "p2")
    assert incoming(wish).claimed_by == "p2"


def test_a_message_that_was_never_begun_gets_its_first_run():
    (accepted,) = accept(message())
    taken = again(StartRun(PLAN, accepted.pk, accepted.session_pk))
    assert Run.objects.get().pk == taken.run_pk


def test_what_was_done_is_handed_over_step_by_step():
    run, wish = begun()
    ((first, second),) = record_steps([step(run, 1, "f", "g")])
    finish_calls(
        [
            CallOutcome(
                first, ToolCall.State.SUCCEEDED, "p", False, "done", None, "", 1, next_pk=second
            )
        ]
    )
    record_steps([step(run, 2)])
    one, two = again(wish).steps
    assert (one.request, one.response) == ([{"role": "user", "content": "r1"}], {"content": "x"})
    assert [(call.pk, call.call_id, call.state, call.result) for call in one.calls] == [
        (first, "c0", "succeeded", "done"),
        (second, "c1", "running", ""),
    ]
    assert (two.request, two.calls) == ([{"role": "user", "content": "r2"}], [])


def test_a_final_answer_that_was_recorded_is_handed_over():
    run, wish = begun()
    pk = reply(wish, run.run_pk, "hello", "pending", segments=[{"a": 1}])
    answer = again(wish).answer
    assert answer is not None
    (one,) = answer.messages
    assert (one.pk, one.state, one.segments) == (pk, "pending", [{"a": 1}])
    assert (answer.text, one.is_forward) == ("hello", False)


@pytest.mark.parametrize(
    ("state", "spoken"), [("delivered", True), ("unknown", True), ("failed", False)]
)
def test_it_is_known_whether_a_tool_has_spoken_before(state, spoken):
    run, wish = begun()
    ((call,),) = record_steps([step(run, 1, "send_message")])
    pk = reply(wish, run.run_pk, "wait", tool_call_pk=call)
    Message.objects.filter(pk=pk).update(state=state)
    taken = again(wish)
    assert (taken.has_spoken, taken.answer) == (spoken, None)


def test_it_is_known_how_much_tools_have_said_before_but_for_questions_to_the_owners():
    run, wish = begun()
    ((one, other),) = record_steps([step(run, 1, "send_message", "pay")])
    reply(wish, run.run_pk, "four", tool_call_pk=one)
    reply(wish, run.run_pk, "fiver", "failed", tool_call_pk=one)
    reply(wish, run.run_pk, "may I?", tool_call_pk=other)
    record_questions(ApprovalRequest(other, wish.session_pk or 0, {}))
    assert again(wish).said == (2, 9)


def test_a_finished_run_is_not_taken_up():
    run, wish = begun()
    complete_runs(
        [RunCompletion(run.run_pk, Run.State.FAILED, wish.message_pk, Message.State.FAILED)]
    )
    Message.objects.filter(direction="in").update(state=Message.State.WAITING)
    assert again(wish).run_pk != run.run_pk


def test_the_messages_of_an_answer_are_handed_over_without_the_forward_that_was_refused():
    run, wish = begun()
    reply(wish, run.run_pk, "ab", "failed", part=0)
    pks = [
        reply(wish, run.run_pk, text, state, part=part)
        for part, (text, state) in enumerate([("a", "delivered"), ("b", "pending")], 1)
    ]
    answer = again(wish).answer
    assert answer is not None
    assert answer.text == "a\nb"
    assert [(one.pk, one.state) for one in answer.messages] == [
        (pks[0], "delivered"),
        (pks[1], "pending"),
    ]
