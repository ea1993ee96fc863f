"""Answers that are faulty: asked for once more, on record, then mended or given up."""

from dataclasses import replace
from typing import Any

import pytest

from agent.domain.errors import LLMError
from agent.llm.answers.completion import parse_completion
from agent.llm.requests.base import LLMResponse
from agent.record.runs.runs import RecordedStep
from agent.run import task
from agent.run.task import AnswerFault, find_fault, mend, only_repeats, was_asked_again
from tests.agent.run.test_engine import START, Notes, Tools, run
from tests.agent.talk import Script, calling
from tools.text.fences import neutralize_marks

MARKED = 'Let me look.\n<tool_call>\n{"name": "unknown_tool", "arguments": {"a": 1}'
LOOPING = "It is fine. " + "I will now look at it again. " * 40
FAULTS = pytest.mark.parametrize("faulty", [MARKED, LOOPING], ids=["marks", "repeating"])


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def notes() -> Notes:
    return Notes()


def answer(text: str, finish_reason: str = "stop", **message: Any) -> LLMResponse:
    choice = {"message": {"content": text, **message}, "finish_reason": finish_reason}
    return parse_completion({"choices": [choice]})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("hello", None),
        (" \n", AnswerFault.NOTHING),
        (MARKED, AnswerFault.MARKS),
        ("Write <tool_call> in front of it.", None),
        (LOOPING, AnswerFault.REPEATING),
    ],
)
def test_what_is_wrong_with_an_answer(text, fault):
    assert find_fault(answer(text)) is fault


def test_an_answer_that_calls_tools_has_no_fault():
    assert find_fault(answer("", tool_calls=calling(("f", "{}"))["tool_calls"])) is None


@pytest.mark.parametrize(
    ("response", "text", "note"),
    [
        (answer("One. Two. Thr", "length"), "One. Two.", task.ENDED),
        (answer("Onetwothree", "length"), "Onetwothree…", task.CUT_SHORT),
        (answer("One. Two.", "length"), "One. Two.", task.CUT_SHORT),
        (answer("One. Tw", "content_filter"), "One. Tw", task.FILTERED),
        (answer(MARKED), "Let me look.", task.MARKS_DROPPED),
    ],
)
def test_an_answer_is_mended_with_a_remark_for_the_record(response, text, note):
    assert mend(response) == (text, (note,))


def test_a_loop_is_cut():
    text, remarks = mend(answer(LOOPING))
    assert text.startswith("It is fine. I will now look")
    assert len(text) < 200
    assert remarks == (task.REPETITION_CUT,)


def test_an_answer_without_a_finish_reason_is_taken_as_it_is():
    assert mend(answer("One. Tw", "")) == ("One. Tw", ())


def test_nothing_counts_in_a_row_and_other_faults_once_a_run():
    nothing, marks = AnswerFault.NOTHING, AnswerFault.MARKS
    assert was_asked_again(nothing, [None, nothing])
    assert not was_asked_again(nothing, [nothing, None])
    assert was_asked_again(marks, [marks, None])
    assert not was_asked_again(marks, [])


@pytest.mark.parametrize(
    ("text", "said", "repeats"),
    [
        ("Done!", ["done"], True),
        ("A.\n\nB.", ["B", "A"], True),
        ("A B", ["A", "B"], True),
        ("A.\nC.", ["A", "B"], False),
        ("😊", ["😊"], True),
        ("😊", ["!"], False),
        ("", ["a"], False),
        ("a", [], False),
    ],
)
def test_a_text_that_only_repeats_what_was_said(text, said, repeats):
    assert only_repeats(text, said) is repeats


@FAULTS
async def test_a_faulty_answer_is_asked_for_once_more_and_on_record(tools, notes, faulty):
    result = await run(Script(faulty, "good"), tools, notes)
    assert (result.text, result.calls, result.notes) == ("good", 2, ())
    assert [step.response["content"] for step in notes.steps] == [faulty]
    assert notes.steps[0].error in (task.MARKS, task.REPEATING)


async def test_the_model_is_told_that_calls_are_no_text(tools, notes):
    model = Script(MARKED, "good")
    await run(model, tools, notes)
    assert [one["content"] for one in model.requests[1].messages[2:]] == [
        neutralize_marks(MARKED),
        task.USE_TOOL_CALLS,
    ]


@FAULTS
async def test_an_answer_that_is_faulty_again_is_mended(tools, notes, faulty):
    model = Script(faulty, calling(("f", "{}")), faulty)
    result = await run(model, tools, notes)
    assert 0 < len(result.text) < 200
    assert "<tool_call>" not in result.text
    assert result.notes in ((task.MARKS_DROPPED,), (task.REPETITION_CUT,))


async def test_marks_alone_never_reach_the_chat_nor_end_in_silence(tools, notes):
    marks = MARKED.removeprefix("Let me look.\n")
    with pytest.raises(LLMError, match="tool calls as text"):
        await run(Script(marks, marks), tools, notes)
    assert [step.error for step in notes.steps] == [task.MARKS] * 2


async def test_a_run_that_is_resumed_after_a_faulty_answer_tells_the_model(tools, notes):
    faulty = RecordedStep(START, {"content": MARKED}, [])
    model = Script("good")
    assert (await run(model, tools, notes, steps=[faulty])).text == "good"
    assert model.requests[0].messages[-1]["content"] == task.USE_TOOL_CALLS
    again = replace(faulty, request=[])
    assert (await run(Script(), tools, notes, steps=[faulty, again])).text == "Let me look."


async def test_marks_in_the_last_words_are_dropped(tools, notes):
    result = await run(Script(MARKED), tools, notes, model_calls=1)
    assert (result.text, result.notes) == ("Let me look.", (task.MARKS_DROPPED,))


async def test_tools_get_to_know_what_the_model_thought(tools, notes):
    await run(Script(calling(("f", "{}")) | {"reasoning_content": "because"}, "done"), tools, notes)
    assert tools.invocations[0].reasoning in ("because", "")
