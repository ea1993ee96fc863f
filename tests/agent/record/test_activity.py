"""The sums of activity say what the rows say, whatever happens to a message and to its
transaction."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from agent.domain.states import MessageReason
from agent.domain.types import ChatAddress, Delivery, playground_account
from agent.models import ActivitySum, ChatSession, Message, Run, ToolCall, ToolUse
from agent.models.activity import WHOLE_DAY
from agent.record.arrivals.arrivals import refuse_messages
from agent.record.runs.replies import (
    RunCompletion,
    SendResult,
    complete_runs,
    correct_send_result,
    mark_replies_sent,
    record_send_results,
)
from agent.record.runs.runs import StartRun
from agent.record.runs.steps import CallOutcome, NewCall, NewStep, finish_calls, record_steps
from agent.record.sums import activity
from agent.record.sums.activity import prune_activity
from agent.record.waiting import recovery
from agent.record.waiting.stops import stop_answer
from tests.agent.databases import inside, postgres
from tests.agent.talk import PLAN, PROCESS, accept, arrival, arrivals, begin, message, reply

__all__ = ["postgres"]
State = Message.State
CHATS = [ChatAddress("10001", "private", str(20001 + n)) for n in range(3)]


@pytest.fixture(params=["sqlite", "postgres"], autouse=True)
def database(request: pytest.FixtureRequest, db: None) -> Iterator[None]:
    if request.param == "sqlite":
        yield
        return
    with inside(request.getfixturevalue("postgres")):
        yield


def sums(**where: object) -> dict[str, int]:
    """What is counted of whole days, without zeros."""
    found: Counter[str] = Counter()
    rows: Any = ActivitySum.objects.filter(hour=WHOLE_DAY, **where).values()
    for row in rows:
        for name, value in row.items():
            if name not in ("id", "day", "hour", "session_id"):
                found[name] += value
    return {name: value for name, value in found.items() if value}


def said_by_rows() -> dict[str, int]:
    """The same, counted from the rows one by one."""
    found: Counter[str] = Counter()
    for one in Message.objects.exclude(reason=MessageReason.LATER_RESULT):
        outcome = activity.OUTCOME_COLUMNS.get((one.direction, one.state))
        found["received"] += one.direction == "in"
        found["addressed"] += one.direction == "in" and one.reason != "not_addressed"
        if outcome:
            found[outcome] += 1
        if outcome == "answered":
            found["within_1"] += 1
    ended = (Run.State.FINISHED, Run.State.FAILED, Run.State.STOPPED)
    found["runs"] = Run.objects.filter(state__in=ended).count()
    found["failed_runs"] = Run.objects.filter(state="failed").count()
    found["tool_calls"] = ToolCall.objects.count()
    found["failed_calls"] = ToolCall.objects.filter(state__in=("failed", "unknown")).count()
    return {name: value for name, value in found.items() if value}


def called(run_pk: int, *states: str) -> None:
    """A step whose tool calls end so; "" for one that does not end."""
    calls = tuple(NewCall(f"c{n}", "get_weather", {}, "20001") for n in range(len(states)))
    (pks,) = record_steps([NewStep(run_pk, 1, [], [], {}, calls=calls)])
    for pk, state in zip(pks, states, strict=True):
        if state:
            done = CallOutcome(pk, ToolCall.State(state), "functions", False, "", None, "", 1)
            finish_calls([done])


def play(dice: random.Random, chat: ChatAddress) -> None:
    """One message and what becomes of it."""
    (accepted,) = accept(message("hi", chat, message_id=str(dice.random())))
    if dice.random() < 0.2:
        refuse_messages([accepted.pk])
        return
    wish = StartRun(PLAN, accepted.pk, accepted.session_pk)
    (run,) = begin([wish])
    called(run.run_pk, *dice.choices(["succeeded", "failed", "unknown", ""], k=dice.randint(0, 2)))
    if dice.random() < 0.2:
        stop_answer(accepted.pk, MessageReason.STOPPED)
        return
    sent = reply(wish, run.run_pk, f"{accepted.pk}")
    if dice.random() < 0.3:  # the process dies; another one takes the message up
        recovery._settle_outgoing(Message.objects.filter(pk=sent))
        mark_replies_sent([(sent, f"again {sent}", PROCESS)] if dice.random() < 0.5 else [])
    state = dice.choice([State.DELIVERED, State.FAILED, State.UNKNOWN])
    answered = State.FAILED if state == State.FAILED else State.ANSWERED
    ended = Run.State.FAILED if dice.random() < 0.2 else Run.State.FINISHED
    outcome = SendResult(sent, Delivery(state))
    complete_runs([RunCompletion(run.run_pk, ended, accepted.pk, answered, outcome=outcome)])
    if dice.random() < 0.5:
        late = Delivery(dice.choice([State.DELIVERED, State.FAILED]))
        echo = Message.objects.get(pk=sent).echo or ""
        correct_send_result(chat.account, echo, late)


@pytest.mark.parametrize("state", [State.DELIVERED, State.FAILED])
def test_what_a_client_told_another_process_is_kept_and_counted_once(state):
    (accepted,) = accept(message("hi", CHATS[0]))
    wish = StartRun(PLAN, accepted.pk, accepted.session_pk)
    (run,) = begin([wish])
    sent = reply(wish, run.run_pk, "yes")
    echo = Message.objects.get(pk=sent).echo or ""
    told = Delivery(state, "77")
    assert correct_send_result(CHATS[0].account, echo, told) is True
    unknown = SendResult(sent, Delivery(State.UNKNOWN, error="no answer within 60 s"))
    ending = RunCompletion(
        run.run_pk, Run.State.FINISHED, accepted.pk, State.ANSWERED, outcome=unknown
    )
    complete_runs([ending])
    row = Message.objects.get(pk=sent)
    assert (row.state, row.message_id, row.in_history) == (state, "77", state == State.DELIVERED)
    assert sums() == said_by_rows()


def test_an_answer_thought_lost_that_waits_again_counts_once_it_arrives():
    (accepted,) = accept(message("hi", CHATS[0]))
    wish = StartRun(PLAN, accepted.pk, accepted.session_pk)
    (run,) = begin([wish])
    sent = reply(wish, run.run_pk, "yes")
    recovery._settle_outgoing(Message.objects.filter(pk=sent))
    for state in (State.PENDING, State.DELIVERED):
        record_send_results([SendResult(sent, Delivery(state))])
        assert sums().get("unknown") is None
    assert sums()["sent"] == 1


@pytest.mark.parametrize("seed", range(3))
def test_sums_equal_what_the_rows_say_after_a_day_with_everything_in_it(seed):
    dice = random.Random(seed)
    for _ in range(25):
        play(dice, dice.choice(CHATS))
    assert sums() == said_by_rows()
    for chat in ChatSession.objects.all():
        assert sums(session=chat)["received"] == chat.messages.filter(direction="in").count()


def test_hours_add_up_to_the_day():
    accept(message("a"), message("b"))
    of_hours = ActivitySum.objects.exclude(hour=WHOLE_DAY).values_list("received", "answered")
    of_day = ActivitySum.objects.filter(hour=WHOLE_DAY).values_list("received", "answered")
    assert [sum(one) for one in zip(*of_hours, strict=True)] == list(of_day[0])


def test_what_was_rolled_back_is_not_counted():
    with transaction.atomic():
        accept(message())
        transaction.set_rollback(True)
    assert sums() == {}


def test_a_message_that_is_not_for_the_bot_is_counted_as_received_alone():
    accept(message("hello all", ChatAddress("10001", "group", "30001")))
    assert sums() == {"received": 1}


def test_a_message_that_was_seen_before_is_counted_once():
    for _ in range(2):
        accept(message(message_id="7"))
    assert sums() == {"received": 1, "addressed": 1}


def test_what_an_operator_tries_out_in_a_playground_is_not_counted():
    play(random.Random(5), ChatAddress(playground_account(1), "private", "20001"))
    assert Message.objects.exists()
    assert not ActivitySum.objects.exists()
    assert not ToolUse.objects.exists()


def test_the_use_of_tools_is_counted_by_tool():
    (accepted,) = accept(message())
    (run,) = begin([StartRun(PLAN, accepted.pk, accepted.session_pk)])
    called(run.run_pk, "succeeded", "failed", "unknown", "")
    assert list(ToolUse.objects.values_list("tool", "calls", "failures")) == [("get_weather", 4, 2)]


@pytest.mark.parametrize(
    ("seconds", "column"),
    [(0.4, "within_1"), (8.0, "within_8"), (8.1, "within_13"), (999, "later")],
)
def test_the_time_to_an_answer_is_counted_in_its_column(seconds, column):
    received = timezone.now() - timedelta(seconds=seconds)
    (accepted,) = arrivals().accept_messages([arrival(message(), received_at=received)])
    (run,) = begin([StartRun(PLAN, accepted.pk, accepted.session_pk)])
    activity.count_endings({accepted.pk: State.ANSWERED}, received + timedelta(seconds=seconds))
    assert sums()[column] == 1
    assert run.run_pk


def test_a_run_that_is_taken_up_again_is_counted_once():
    (accepted,) = accept(message())
    begin([StartRun(PLAN, accepted.pk, accepted.session_pk)])
    recovery._interrupt(list(Run.objects.values_list("pk", flat=True)))
    assert "runs" not in sums()
    resume = StartRun(PLAN, accepted.pk, accepted.session_pk, resumed=True)
    (run,) = begin([resume], process_id=PROCESS)
    complete_runs([RunCompletion(run.run_pk, Run.State.FINISHED, accepted.pk, State.ANSWERED)])
    assert sums()["runs"] == 1


def test_old_hours_are_deleted_before_old_days():
    accept(message())
    session = ChatSession.objects.get()
    for day in ("2025-01-01", "2026-11-01"):
        for hour in (WHOLE_DAY, 3):
            ActivitySum.objects.create(day=day, hour=hour, session=session, received=1)
    assert prune_activity("2026-01-01", "2026-11-10") == 3
    assert prune_activity("2026-01-01", "2026-11-10") == 0
    assert ActivitySum.objects.filter(day="2026-11-01").get().hour == WHOLE_DAY
