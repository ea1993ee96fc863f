"""The timing gate: what it makes of the model's answers, and where it goes on when a process did
not live to the end."""

from datetime import timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from agent.builtin_tools import course
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.errors import LLMError
from agent.models import Step, ToolCall
from agent.record.runs.runs import RecordedCall, RecordedStep
from agent.run.engine import Engine
from agent.run.gate import HINT
from agent.run.services import RunServices
from agent.run.task import RunRequest, RunResult
from tests.agent.run.test_engine import START, Notes
from tests.agent.talk import GROUP, Script, calling
from tools.contract import ToolExecutionContext
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

State = ToolCall.State
CONTINUE, NO_ACTION = calling(("continue", "{}")), calling(("no_action", "{}"))
#: What the gate was asked first: the persona's prompt with its own behind it, and a message with
#: what is in its picture.
ASKED = [{"role": "system", "content": "s\n\nJudge."}, {"role": "user", "content": "q [a cat]"}]


class Voice:
    chat = GROUP


async def run(
    model: Script, notes: Notes, registry: ToolRegistry | None = None, **fields: Any
) -> RunResult:
    registry = registry or ToolRegistry()
    registry.register_provider(
        MaisakaBuiltinToolProvider(
            [
                course.wait_for_message,
                course.continue_turn,
                course.take_no_action,
                course.finish_turn,
            ]
        )
    )
    context = ToolExecutionContext(
        session_id=GROUP.address,
        is_group_chat=True,
        services=RunServices(sender=cast("Any", Voice())),
    )
    task = RunRequest(1, list(START), context, **{"model_calls": 2, "is_gated": True, **fields})
    return await Engine(model, registry).run(task, notes)


def step(answer: dict[str, Any] | None, *states: State) -> RecordedStep:
    """A step of the gate as the record has it; what ended has a result."""
    calls = [
        RecordedCall(10 + n, f"k{n}", state, "" if state in _OPEN else "done")
        for n, state in enumerate(states)
    ]
    return RecordedStep(list(ASKED), answer, calls, Step.Phase.TIMING)


_OPEN = (State.WAITING, State.RUNNING)


@pytest.fixture
def notes() -> Notes:
    return Notes()


# --- Deciding -----------------------------------------------------------------------


async def test_the_gate_is_told_once_that_it_chose_nothing_and_its_steps_are_its_own(notes: Notes):
    model = Script("hm", calling(("get_weather", "{}")), CONTINUE, "An answer.")
    result = await run(model, notes, model_calls=1)
    assert (result.text, result.calls, result.planned) == ("An answer.", 4, 1)
    hints = [[one["content"] for one in request.messages].count(HINT) for request in model.requests]
    assert hints == [0, 1, 1, 0]
    assert [one.phase for one in notes.steps] == [Step.Phase.TIMING] * 3
    assert result.input_tokens == 40


async def test_what_the_gate_was_told_is_not_what_the_planner_is_told(notes: Notes):
    model = Script(calling(("wait", '{"seconds": 0}')), CONTINUE, "An answer.")
    await run(model, notes)
    assert model.requests[-1].messages == START


async def test_three_answers_that_decide_nothing_mean_no_action(notes: Notes):
    result = await run(Script("a", "b", "c"), notes)
    assert (result.ended_by, result.planned, result.text) == ("no_action", 0, "")


async def test_the_gate_is_offered_what_the_operator_leaves_it_in_this_chat(notes: Notes):
    registry = ToolRegistry(lambda: {"wait": ToolSettings("wait", scope="private")})
    model = Script(CONTINUE, "An answer.")
    await run(model, notes, registry=registry)
    assert [tool["name"] for tool in model.requests[0].tools] == ["continue", "no_action"]


async def test_a_gate_that_could_not_open_is_left_out(notes: Notes):
    registry = ToolRegistry(lambda: {"continue": ToolSettings("continue", enabled=False)})
    assert (await run(Script("An answer."), notes, registry=registry)).text == "An answer."


async def test_a_gate_that_cannot_be_asked_fails_the_run(notes: Notes):
    with pytest.raises(LLMError):
        await run(Script(LLMError("down")), notes)


async def test_a_call_without_a_name_is_no_decision_and_fails_with_the_reason(notes: Notes):
    model = Script(
        {"tool_calls": [{"id": "c1", "function": {"name": ""}}]},
        calling(("continue", "null")),
        "An answer.",
    )
    assert (await run(model, notes)).text == "An answer."
    assert [message["content"] for message in model.requests[1].messages].count(HINT) == 1
    assert (notes.outcomes[0].state, "function.name" in notes.outcomes[0].error) == (
        State.FAILED,
        True,
    )


async def test_what_the_gate_called_goes_back_with_arguments_that_are_an_object(notes: Notes):
    model = Script(calling(("wait", "null")), calling(("continue", "{")), CONTINUE, "An answer.")
    await run(model, notes)
    asked = [call for one in model.requests[2].messages for call in one.get("tool_calls", ())]
    assert [call["function"]["arguments"] for call in asked] == ["{}", "{}"]


async def test_the_reasoning_behind_a_call_of_the_gate_goes_back_with_it(notes: Notes):
    model = Script(
        calling(("wait", '{"seconds": 0}')) | {"reasoning_content": "later"}, CONTINUE, "An answer."
    )
    await run(model, notes)
    assert model.requests[1].messages[-2]["reasoning_content"] == "later"


# --- Taking up ----------------------------------------------------------------------


async def test_behind_an_open_gate_the_planner_is_sent_what_the_gate_was_sent(notes: Notes):
    model = Script("An answer.")
    result = await run(model, notes, steps=[step(CONTINUE, State.SUCCEEDED)])
    assert model.requests[0].messages == [START[0], ASKED[1]]
    assert (result.text, result.last_step and result.last_step.number) == ("An answer.", 2)
    assert result.last_step
    assert result.last_step.request == [START[0], ASKED[1]]


@pytest.mark.parametrize("state", _OPEN)
async def test_a_decision_that_was_not_carried_out_is_carried_out_now(notes: Notes, state: State):
    model = Script("An answer.")
    await run(model, notes, steps=[step(CONTINUE, state)])
    assert notes.events == ["start 10", "finish 10 next None"]
    assert (await run(Script(), Notes(), steps=[step(NO_ACTION, state)])).ended_by == "no_action"


async def test_what_was_decided_stays_so(notes: Notes):
    assert (
        await run(Script(), notes, steps=[step(NO_ACTION, State.SUCCEEDED)])
    ).ended_by == "no_action"


async def test_calls_beside_the_decision_are_not_left_open(notes: Notes):
    both = calling(("get_weather", "{}"), ("continue", "{}"))
    await run(Script("An answer."), notes, steps=[step(both, State.RUNNING, State.WAITING)])
    assert notes.events == ["finish 10 next None", "start 11", "finish 11 next None"]


async def test_a_wait_counts_from_when_it_began(notes: Notes):
    begun_at = timezone.now() - timedelta(hours=1)
    waiting = RecordedCall(10, "k0", State.RUNNING, "", begun_at)
    answer = calling(("wait", '{"seconds": 600}'))
    model = Script(CONTINUE, "An answer.")
    await run(model, notes, steps=[RecordedStep(list(ASKED), answer, [waiting], Step.Phase.TIMING)])
    assert notes.outcomes[0].result == "等待结束：计划 600 秒，实际 3600 秒。"
    assert model.requests[0].messages[-1]["content"] == notes.outcomes[0].result


@pytest.mark.parametrize(
    "left", [step(None), step({"content": "hm"}), step(calling(("wait", "{}")), State.SUCCEEDED)]
)
async def test_a_gate_that_had_not_decided_is_asked_again(notes: Notes, left: RecordedStep):
    model = Script(CONTINUE, "An answer.")
    result = await run(model, notes, steps=[left])
    assert model.requests[0].messages[1:] == ASKED[1:]
    assert (result.text, [one.number for one in notes.steps]) == ("An answer.", [2])
