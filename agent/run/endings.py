"""How a run comes to its last word: by an answer without tool calls, or by its last model call."""

from dataclasses import replace

from agent.domain.errors import LLMError
from agent.llm.answers.completion import describe_empty_response, is_empty_response
from agent.llm.requests.base import LLMResponse
from agent.record.runs.steps import NewStep
from agent.run.answers import (
    AnswerFault,
    build_correction,
    describe_fault,
    find_fault,
    mend,
    was_asked_again,
)
from agent.run.task import RunProgress, RunRequest, RunResult, StepJournal

OUT_OF_CALLS = "达到最大迭代次数，未能得出最终答案"


async def end_with_answer(
    task: RunRequest,
    journal: StepJournal,
    progress: RunProgress,
    response: LLMResponse,
    step: NewStep,
) -> RunResult | None:
    """The end of a run by an answer without tool calls; None where it is faulty, and the model is
    asked once more.

    Raises :class:`agent.domain.errors.LLMError` where it was before, and there is nothing to say.
    """
    fault = find_fault(response)
    if fault is None or _is_taken(task, progress, fault, response):
        return _ended(progress, response, step)
    await journal.record_step(replace(step, error=describe_fault(fault, response)))
    progress.unrecorded = []
    _ask_again(progress, fault, response)
    return None


def end_with_recorded(
    task: RunRequest, progress: RunProgress, response: LLMResponse
) -> RunResult | None:
    """The same for an answer that an earlier process has put on record."""
    fault = find_fault(response)
    if fault is None or _is_taken(task, progress, fault, response):
        return _ended(progress, response, None)
    _ask_again(progress, fault, response)
    return None


def end_with_last_words(
    task: RunRequest, progress: RunProgress, response: LLMResponse, step: NewStep
) -> RunResult:
    """The end of a run by its last model call, which offered no tools: of calls in its answer none
    is made."""
    step = replace(step, calls=())
    may_be_silent = task.accepts_nothing or task.has_spoken()
    if mend(response).text.strip() or (may_be_silent and is_empty_response(response)):
        return _ended(progress, response, step)
    error = describe_fault(find_fault(response) or AnswerFault.NOTHING, response)
    return progress.end(OUT_OF_CALLS, replace(step, error=error), out_of_calls=True)


def _is_taken(
    task: RunRequest, progress: RunProgress, fault: AnswerFault, response: LLMResponse
) -> bool:
    """Whether a faulty answer ends the run all the same."""
    was_asked = was_asked_again(fault, progress.faults)
    if fault is AnswerFault.NOTHING:
        return task.has_spoken() or (task.accepts_nothing and was_asked)
    return was_asked and bool(mend(response).text.strip() or task.has_spoken())


def _ask_again(progress: RunProgress, fault: AnswerFault, response: LLMResponse) -> None:
    if was_asked_again(fault, progress.faults):
        if fault is AnswerFault.NOTHING:
            raise LLMError(describe_empty_response(response, " twice"))
        raise LLMError(describe_fault(fault, response))
    progress.faults.append(fault)
    for message in build_correction(fault, response):
        progress.add(message)


def _ended(progress: RunProgress, response: LLMResponse, step: NewStep | None) -> RunResult:
    answer = mend(response)
    return progress.end(answer.text, step, notes=answer.notes)
