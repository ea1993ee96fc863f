"""The run loop: model call, tools, model call …, each put down before the next thing happens."""

import asyncio
import json
from typing import Any

import pytest

from agent.domain.errors import LLMError
from agent.models import ToolCall
from agent.record.runs.deferred_calls import INTERRUPTED, CallSuspension
from agent.record.runs.runs import RecordedCall, RecordedStep
from agent.record.runs.steps import CallOutcome, NewStep
from agent.record.waiting.call_stops import STOPPED
from agent.run.call_stops import TOLD, calls_under_way, stop_calls
from agent.run.engine import OUT_OF_CALLS, Engine
from agent.run.task import CUT_SHORT, RunRequest, RunResult
from tests.agent.talk import Script, calling
from tests.tools.fakes import Provider
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation, ToolSpec
from tools.registry.registry import ToolRegistry

CONTEXT = ToolExecutionContext(
    session_id="onebot:group:7", stream_id="onebot:group:7", user_id="20001"
)
START = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]


class Notes:
    """A journal in memory: what was put down, in order."""

    def __init__(self) -> None:
        self.steps: list[NewStep] = []
        self.outcomes: list[CallOutcome] = []
        self.events: list[str] = []

    async def record_step(self, step: NewStep) -> list[int]:
        self.steps.append(step)
        self.events.append(f"step {step.number}")
        return [10 * step.number + place for place in range(len(step.calls))]

    async def start_call(self, pk: int) -> None:
        self.events.append(f"start {pk}")

    async def finish_call(self, outcome: CallOutcome) -> None:
        self.outcomes.append(outcome)
        self.events.append(f"finish {outcome.pk} next {outcome.next_pk}")

    async def suspend(self, suspension: CallSuspension) -> None:
        self.events.append(f"suspend {suspension.pk} next {suspension.next_pk}")


class Tools(Provider):
    """A tool ``f`` that tells what it was given, as often as it is called, and a mute one and a
    broken one."""

    def __init__(self) -> None:
        super().__init__("tools", "f", "g", ToolSpec(name="mute"), answer=self._answer)

    async def _answer(self, invocation: ToolInvocation) -> ToolExecutionResult:
        if invocation.tool_name == "g":
            raise RuntimeError("broken")
        content = "" if invocation.tool_name == "mute" else json.dumps(invocation.arguments)
        return ToolExecutionResult(invocation.tool_name, success=True, content=content)


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def notes() -> Notes:
    return Notes()


async def run(model: Script, tools: Provider, notes: Notes, **fields: Any) -> RunResult:
    registry = ToolRegistry()
    registry.register_provider(tools)
    task = RunRequest(1, list(START), CONTEXT, **{"model_calls": 5, **fields})
    return await Engine(model, registry).run(task, notes)


def roles(model: Script, number: int) -> list[str]:
    return [message["role"] for message in model.requests[number].messages]


# --- One call that is stopped ---------------------------------------------------------


async def test_a_call_that_is_stopped_is_of_unknown_outcome_and_the_run_goes_on(notes):
    begun, was_cancelled = asyncio.Event(), asyncio.Event()

    async def hang(invocation: ToolInvocation) -> ToolExecutionResult:
        if invocation.tool_name == "quick":
            return ToolExecutionResult("quick", success=True, content="made")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_cancelled.set()
        raise AssertionError

    model = Script(calling(("slow", "{}"), ("quick", "{}")), "it was stopped")
    provider = Provider("tools", "slow", "quick", answer=hang)
    going_on = asyncio.create_task(run(model, provider, notes))
    await begun.wait()
    assert list(calls_under_way) == [10]
    stop_calls([9, 10, 10])
    result = await going_on
    assert was_cancelled.is_set()
    assert result.text == "it was stopped"
    told = [one["content"] for one in model.requests[1].messages if one["role"] == "tool"]
    assert told == [TOLD, "made"]
    stopped, made = notes.outcomes
    assert (stopped.state, stopped.error, stopped.next_pk) == ("unknown", STOPPED, 11)
    assert made.state == "succeeded"
    assert not calls_under_way


async def test_a_run_that_is_cancelled_in_a_call_is_not_taken_for_a_stopped_call(notes):
    begun = asyncio.Event()

    async def hang(_invocation: ToolInvocation) -> ToolExecutionResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    work = run(Script(calling(("slow", "{}"))), Provider("tools", "slow", answer=hang), notes)
    going_on = asyncio.create_task(work)
    await begun.wait()
    going_on.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going_on
    assert notes.outcomes == []
    assert not calls_under_way


# --- A run from the beginning -------------------------------------------------------


async def test_an_answer_without_tools_ends_the_run_and_its_step_is_committed_with_the_answer(
    tools, notes
):
    result = await run(Script("hello"), tools, notes)
    assert (result.text, result.calls, result.input_tokens, result.output_tokens) == (
        "hello",
        1,
        10,
        2,
    )
    assert notes.events == []
    assert result.last_step is not None
    assert (result.last_step.number, result.last_step.request, result.last_step.response) == (
        1,
        START,
        {"content": "hello"},
    )
    assert result.last_step.tools == ["f", "g", "mute"]


async def test_a_tool_is_run_and_the_model_told_its_result(tools, notes):
    model = Script(calling(("f", '{"a": 1}')), "done")
    result = await run(model, tools, notes)
    assert (result.text, result.calls, result.input_tokens) == ("done", 2, 20)
    assert roles(model, 1) == ["system", "user", "assistant", "tool"]
    assert model.requests[1].messages[-1] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": '{"a": 1}',
    }
    assert notes.events == ["step 1", "finish 10 next None"]


async def test_the_steps_together_hold_exactly_what_the_model_was_sent(tools, notes):
    model = Script(calling(("f", "{}")), calling(("f", "{}")), "done")
    result = await run(model, tools, notes)
    assert result.last_step is not None
    sent = [message for step in (*notes.steps, result.last_step) for message in step.request]
    assert sent == model.requests[-1].messages


async def test_several_calls_of_one_answer_are_run_in_their_order_one_after_the_other(tools, notes):
    model = Script(
        calling(("f", '{"n": 1}'), ("mute", "{}"), ("f", '{"n": 2}'), content="wait"), "done"
    )
    await run(model, tools, notes)
    assert [(one.tool_name, one.call_id, one.reasoning) for one in tools.invocations] == [
        ("f", "c1", "wait"),
        ("mute", "c2", "wait"),
        ("f", "c3", "wait"),
    ]
    assert notes.events == [
        "step 1",
        "finish 10 next 11",
        "finish 11 next 12",
        "finish 12 next None",
    ]
    assert [message["tool_call_id"] for message in model.requests[1].messages[3:]] == [
        "c1",
        "c2",
        "c3",
    ]


async def test_the_outcome_of_a_call_is_put_down_with_who_ran_it(tools, notes):
    await run(Script(calling(("f", '{"a": 1}'), ("g", "{}")), "done"), tools, notes)
    good, bad = notes.outcomes
    assert (good.state, good.provider_name, good.result, good.error) == (
        ToolCall.State.SUCCEEDED,
        "tools",
        '{"a": 1}',
        "",
    )
    assert (bad.state, bad.result) == (ToolCall.State.FAILED, "工具执行失败: broken")
    assert notes.steps[0].calls[0].requested_by == "20001"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("g", "{}", "工具执行失败: broken"),
        ("nothing", "{}", "Tool not found: nothing"),
        ("f", "{broken", "JSON"),
        ("mute", "{}", "工具执行成功。"),
    ],
)
async def test_whatever_becomes_of_a_call_the_model_is_told_and_the_run_goes_on(
    tools, notes, name, arguments, told
):
    model = Script(calling((name, arguments)), "done")
    assert (await run(model, tools, notes)).text == "done"
    assert told in model.requests[1].messages[-1]["content"]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('{"a": "b\\u0000"}', {"a": "b\ufffd"}),
        ("{broken", "{broken"),
        ("", {}),
        ("[" * 99_999, "[" * 99_999),
    ],
)
async def test_arguments_are_put_down_as_the_model_wrote_them(tools, notes, written, kept):
    await run(Script(calling(("f", written)), "done"), tools, notes)
    assert notes.steps[0].calls[0].arguments == kept


async def test_a_run_that_is_out_of_model_calls_ends_in_fixed_words(tools, notes):
    model = Script(*[calling(("f", "{}"))] * 3)
    result = await run(model, tools, notes, model_calls=3)
    assert (result.text, result.out_of_calls, result.calls) == (OUT_OF_CALLS, True, 3)
    assert result.last_step
    assert (result.last_step.number, result.last_step.tools, result.last_step.calls) == (3, [], ())
    assert [len(request.tools) for request in model.requests] == [3, 3, 0]
    assert len(tools.invocations) == 2


@pytest.mark.parametrize("more", [(), (("f", "{}"),)])
async def test_the_last_model_call_offers_no_tools_and_its_words_are_the_answer(tools, notes, more):
    model = Script(
        calling(("f", "{}")), calling(*more, content="all I know") if more else "all I know"
    )
    result = await run(model, tools, notes, model_calls=2)
    assert (result.text, result.out_of_calls, len(tools.invocations)) == ("all I know", False, 1)
    assert result.last_step
    assert result.last_step.calls == ()


async def test_a_model_that_cannot_be_asked_is_put_down_and_raised(tools, notes):
    with pytest.raises(LLMError, match="overloaded"):
        await run(Script(calling(("f", "{}")), LLMError("overloaded")), tools, notes)
    assert [(step.number, step.error, step.response) for step in notes.steps][1] == (
        2,
        "overloaded",
        None,
    )


async def test_tools_are_offered_as_the_operator_has_them_at_each_call(tools, notes):
    model = Script(calling(("f", "{}")), "done")

    async def disappear(invocation: ToolInvocation) -> ToolExecutionResult:
        tools.specs = []
        return ToolExecutionResult("f", success=True, content="x")

    tools.answer = disappear
    await run(model, tools, notes)
    assert [[tool["name"] for tool in request.tools] for request in model.requests] == [
        ["f", "g", "mute"],
        [],
    ]


async def test_each_call_is_told_to_whoever_watches(tools, notes):
    seen: list[tuple[str, bool]] = []
    calls = calling(("f", "{}"), ("g", "{}"))
    await run(
        Script(calls, "done"),
        tools,
        notes,
        watch=lambda call, result: seen.append((call.name, result.success)),
    )
    assert seen == [("f", True), ("g", False)]


async def test_runs_side_by_side_share_nothing(tools):
    models = [
        Script(calling(("f", json.dumps({"run": number}))), f"answer {number}")
        for number in range(20)
    ]
    results = await asyncio.gather(*(run(model, tools, Notes()) for model in models))
    assert [result.text for result in results] == [f"answer {number}" for number in range(20)]
    assert [json.loads(model.requests[1].messages[-1]["content"]) for model in models] == [
        {"run": n} for n in range(20)
    ]


async def test_a_cancelled_run_has_put_down_what_it_completed(tools, notes):
    forever: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    model = Script(calling(("f", "{}")), forever)
    running = asyncio.create_task(run(model, tools, notes))
    while len(model.requests) < 2:  # noqa: ASYNC110 - the script has no event for it
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert notes.events == ["step 1", "finish 10 next None"]


# --- Nothing at all -----------------------------------------------------------------

EMPTY: list[Any] = [
    "",
    " \n",
    {"content": None},
    {"content": []},
    {"content": None, "refusal": "I must not."},
    {"content": [{"type": "refusal", "refusal": "I must not."}]},
    {"content": "", "reasoning_content": "Hm."},
]


@pytest.mark.parametrize("answer", EMPTY)
async def test_an_empty_answer_is_asked_for_once_more_and_both_are_put_down(tools, notes, answer):
    model = Script(answer, "hello")
    result = await run(model, tools, notes)
    assert (result.text, result.calls) == ("hello", 2)
    assert model.requests[0] == model.requests[1]
    (empty,) = notes.steps
    assert (empty.number, empty.request, empty.error[:31]) == (
        1,
        START,
        "the model answered with nothing",
    )
    assert result.last_step
    assert (result.last_step.number, result.last_step.request) == (2, [])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", ""),
        (EMPTY[4], " (refusal: I must not.)"),
        (EMPTY[5], " (refusal: I must not.)"),
        (EMPTY[6], " (only reasoning)"),
    ],
)
async def test_nothing_twice_is_a_failed_model_call_that_says_why(tools, notes, answer, why):
    with pytest.raises(LLMError) as caught:
        await run(Script(answer, answer), tools, notes)
    assert str(caught.value) == f"the model answered with nothing twice{why}"
    assert [step.number for step in notes.steps] == [1, 2]


async def test_tool_calls_between_begin_the_count_anew(tools, notes):
    model = Script("", calling(("f", "{}")), "", "hello")
    assert (await run(model, tools, notes)).text == "hello"


async def test_after_something_was_said_nothing_more_has_to_be(tools, notes):
    result = await run(Script(""), tools, notes, has_spoken=lambda: True)
    assert (result.text, result.calls, notes.steps) == ("", 1, [])


async def test_nothing_in_the_last_model_call_ends_in_fixed_words(tools, notes):
    result = await run(Script("", ""), tools, notes, model_calls=2)
    assert (result.text, result.out_of_calls, result.calls) == (OUT_OF_CALLS, True, 2)
    assert (await run(Script(""), tools, notes, model_calls=1, has_spoken=lambda: True)).text == ""


async def test_an_answer_that_was_cut_short_is_one_and_is_noted(tools, notes):
    assert (
        await run(Script({"content": "half an ans", "finish_reason": "length"}), tools, notes)
    ).notes == (CUT_SHORT,)


# --- A run that is taken up ---------------------------------------------------------


def recorded(
    *calls: tuple[str, ToolCall.State, str], response: dict[str, Any] | None = None
) -> RecordedStep:
    """A first step as an earlier process left it: its calls of ``f`` with their state and
    result."""
    answer = calling(*[("f", '{"a": 1}')] * len(calls)) if response is None else response
    places = enumerate(calls)
    return RecordedStep(
        START,
        answer,
        [RecordedCall(10 + n, call_id, state, result) for n, (call_id, state, result) in places],
    )


async def test_a_call_that_was_finished_is_not_run_again(tools, notes):
    model = Script("done")
    steps = [recorded(("c1", ToolCall.State.SUCCEEDED, "25°C"))]
    assert (await run(model, tools, notes, steps=steps)).text == "done"
    assert tools.invocations == []
    assert model.requests[0].messages[-1] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "25°C",
    }


@pytest.mark.parametrize("state", [ToolCall.State.RUNNING, ToolCall.State.UNKNOWN])
async def test_a_call_that_had_begun_is_not_run_again_and_the_model_is_told(tools, notes, state):
    model = Script("done")
    await run(model, tools, notes, steps=[recorded(("c1", state, ""))])
    assert tools.invocations == []
    assert model.requests[0].messages[-1]["content"] == INTERRUPTED


async def test_calls_that_had_not_begun_are_run_now(tools, notes):
    model = Script("done")
    calls = [
        ("c1", ToolCall.State.UNKNOWN, ""),
        ("c2", ToolCall.State.WAITING, ""),
        ("c3", ToolCall.State.WAITING, ""),
    ]
    await run(model, tools, notes, steps=[recorded(*calls)])
    assert [one.call_id for one in tools.invocations] == ["c2", "c3"]
    assert notes.events == ["start 11", "finish 11 next 12", "finish 12 next None"]
    assert [one["tool_call_id"] for one in model.requests[0].messages[3:]] == ["c1", "c2", "c3"]


async def test_call_ids_stay_those_that_were_given_out(tools, notes):
    """An endpoint that gives no ids has them made up, and reading the answer again would make up
    others."""
    model = Script("done")
    response = {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    await run(
        model,
        tools,
        notes,
        steps=[recorded(("made-up", ToolCall.State.SUCCEEDED, "x"), response=response)],
    )
    assistant, tool = model.requests[0].messages[-2:]
    assert assistant["tool_calls"][0]["id"] == tool["tool_call_id"] == "made-up"


async def test_a_step_whose_model_could_not_be_asked_is_asked_again(tools, notes):
    model = Script("done")
    result = await run(model, tools, notes, steps=[RecordedStep(START, None, [])])
    assert model.requests[0].messages == START
    assert result.last_step is not None
    assert (result.last_step.number, result.last_step.request) == (2, [])


async def test_a_final_text_on_record_is_not_asked_for_again(tools, notes):
    model = Script()
    result = await run(model, tools, notes, steps=[recorded(response={"content": "hello"})])
    assert (result.text, result.last_step, model.requests) == ("hello", None, [])


EMPTY_STEP = RecordedStep(
    START, {"content": None, "refusal": "No."}, [], finish_reason="content_filter"
)
AGAIN = RecordedStep([], EMPTY_STEP.response, [], finish_reason="content_filter")


@pytest.mark.parametrize("steps", [[EMPTY_STEP], [RecordedStep(START, None, []), AGAIN]])
async def test_an_empty_answer_on_record_is_asked_for_once_more(tools, notes, steps):
    model = Script("hello")
    assert (await run(model, tools, notes, steps=steps)).text == "hello"
    assert model.requests[0].messages == START
    with pytest.raises(LLMError, match="nothing twice"):
        await run(Script(""), tools, notes, steps=steps)


async def test_nothing_twice_on_record_is_not_asked_for_again(tools, notes):
    with pytest.raises(
        LLMError, match=r"nothing twice \(finish_reason: content_filter; refusal: No\.\)"
    ):
        await run(Script(), tools, notes, steps=[EMPTY_STEP, AGAIN])


async def test_an_empty_answer_on_record_after_words_by_tool_ends_the_run(tools, notes):
    assert (
        await run(Script(), tools, notes, steps=[EMPTY_STEP], has_spoken=lambda: True)
    ).text == ""


async def test_the_steps_before_count_against_the_limit(tools, notes):
    model = Script(calling(("f", "{}")))
    steps = [recorded(("c1", ToolCall.State.SUCCEEDED, "x"))]
    result = await run(model, tools, notes, steps=steps, model_calls=2)
    assert (result.text, len(model.requests), result.calls) == (OUT_OF_CALLS, 1, 1)
    assert result.last_step
    assert result.last_step.number == 2


@pytest.mark.parametrize("state", [ToolCall.State.WAITING, ToolCall.State.RUNNING])
async def test_a_run_that_is_taken_up_tells_each_call_its_own_result_also_beside_one_without_a_name(
    tools, notes, state
):
    answer = {
        "content": None,
        "tool_calls": [None, *calling(("f", '{"a": 1}'), ("f", "null"))["tool_calls"]],
    }
    calls = [
        RecordedCall(1, "k1", ToolCall.State.FAILED, "no name"),
        RecordedCall(2, "k2", ToolCall.State.SUCCEEDED, "done"),
    ]
    model = Script("ok")
    await run(
        model,
        tools,
        notes,
        steps=[RecordedStep(START, answer, [*calls, RecordedCall(3, "k3", state, "")])],
    )
    told = {
        one["tool_call_id"]: one["content"]
        for one in model.requests[0].messages
        if one["role"] == "tool"
    }
    assert told == {
        "k1": "no name",
        "k2": "done",
        "k3": "{}" if state == ToolCall.State.WAITING else INTERRUPTED,
    }


async def test_a_call_without_a_name_that_was_broken_off_is_not_of_unknown_outcome(tools, notes):
    left = RecordedStep(
        START, {"tool_calls": [{}]}, [RecordedCall(1, "k1", ToolCall.State.RUNNING, "")]
    )
    model = Script("ok")
    await run(model, tools, notes, steps=[left])
    assert "function" in model.requests[0].messages[-1]["content"]
    assert notes.outcomes[0].state == ToolCall.State.FAILED
