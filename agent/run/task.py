"""A run as the loop sees it: the request, its state, and its result."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple, Protocol

from django.utils.translation import gettext_noop

from agent.llm.answers.completion import describe_empty_response, is_empty_response
from agent.llm.answers.repetition import cut_repetition, is_repeating
from agent.llm.answers.sentences import end_at_sentence
from agent.llm.answers.text_calls import looks_like_calls
from agent.llm.requests.base import LLMResponse, ToolCallRequest
from agent.llm.requests.messages import ChatMessage
from agent.record.runs.deferred_calls import CallSuspension, DeferredCall
from agent.record.runs.runs import RecordedStep
from agent.record.runs.steps import CallOutcome, NewStep
from agent.run.services import RunDiscoveries
from tools.contract import ToolExecutionContext, ToolExecutionResult

CUT_SHORT = gettext_noop("The answer was cut short at the model's own limit.")
ENDED = gettext_noop("The model's own limit cut the answer; it was ended at a sentence.")
FILTERED = gettext_noop("The endpoint's content filter cut the answer.")
MARKS_DROPPED = gettext_noop("Tool calls that the model wrote into its answer were dropped.")
REPETITION_CUT = gettext_noop("The answer repeated itself and was cut there.")
MARKS = gettext_noop("the model wrote tool calls as text that could not be read")
REPEATING = gettext_noop("the answer repeats itself")
USE_TOOL_CALLS = (
    "（系统提示）上一条回答把工具调用写成了文字，没有执行，用户也看不到。"
    "需要工具时，请用接口的 tool calls 调用；不需要时，请直接回答用户。"
)
#: What may be left of a call in the lines before its first mark.
_OPENING = re.compile(r"<[^<>\n]{0,80}>|\[TOOL_CALLS\]|```\w*")


class AnswerFault(Enum):
    """Why an answer is asked for once more."""

    NOTHING = "nothing"
    MARKS = "marks"
    """It holds marks of tool calls that could not be read."""
    REPEATING = "repeating"


class FinalAnswer(NamedTuple):
    """The text for the chat, and remarks for readers of the record."""

    text: str
    notes: tuple[str, ...] = ()


def find_fault(response: LLMResponse) -> AnswerFault | None:
    """What is wrong with an answer; None for a good one, and for one that calls tools."""
    if response.tool_calls:
        return None
    if is_empty_response(response):
        return AnswerFault.NOTHING
    if looks_like_calls(response.text):
        return AnswerFault.MARKS
    return AnswerFault.REPEATING if is_repeating(response.text) else None


def is_sayable(text: str) -> bool:
    """Whether what a model wrote beside its calls may be said in a chat."""
    return bool(text.strip()) and not (looks_like_calls(text) or is_repeating(text))


def describe_fault(fault: AnswerFault, response: LLMResponse) -> str:
    """The fault in words, for the record."""
    match fault:
        case AnswerFault.NOTHING:
            return describe_empty_response(response)
        case AnswerFault.MARKS:
            return MARKS
        case AnswerFault.REPEATING:
            return REPEATING


def build_correction(fault: AnswerFault, response: LLMResponse) -> list[ChatMessage]:
    """What the model is told when it is asked once more: nothing, where the same request may well
    come out better."""
    if fault is not AnswerFault.MARKS:
        return []
    return [response.message, {"role": "user", "content": USE_TOOL_CALLS}]


def was_asked_again(fault: AnswerFault, faults: Sequence[AnswerFault | None]) -> bool:
    """Whether the run has asked once more for the like of ``fault``; ``faults`` are those of its
    answers so far.

    Nothing counts in a row, the others once a run: a model that was told has been told.
    """
    return faults[-1] is fault if fault is AnswerFault.NOTHING and faults else fault in faults


def mend(response: LLMResponse) -> FinalAnswer:
    """``response`` as it may be said in a chat: without marks of calls and repetition, and ended at
    a sentence where it was cut. The text may be empty then."""
    text = response.text
    notes: list[str] = []
    if looks_like_calls(text):
        text = _drop_marks(text)
        notes.append(MARKS_DROPPED)
    if is_repeating(text):
        text = cut_repetition(text)
        notes.append(REPETITION_CUT)
    elif response.finish_reason == "length" and text.strip():
        whole = text.rstrip()
        text = end_at_sentence(text)
        notes.append(ENDED if len(text) < len(whole) else CUT_SHORT)
    elif response.finish_reason == "content_filter" and text.strip():
        notes.append(FILTERED)
    return FinalAnswer(text, tuple(notes))


def _drop_marks(text: str) -> str:
    """The lines before the first mark of a call."""
    lines = text.splitlines()
    begin = bisect_left(
        range(1, len(lines) + 1),
        True,
        key=lambda count: looks_like_calls("\n".join(lines[:count])),
    )
    kept = lines[:begin]
    while kept and not any(map(str.isalnum, _OPENING.sub("", kept[-1]))):
        kept.pop()
    return "\n".join(kept)


def only_repeats(text: str, said: Collection[str]) -> bool:
    """Whether ``text`` says no more than ``said``, the messages that were sent before it.

    Letters and digits are compared, line by line and as a whole.
    """
    if not said:
        return False
    lines = _normal_lines([text])
    whole, spoken = _normal(text), [_normal(one) for one in said]
    return bool(lines) and (lines <= _normal_lines(said) or whole == "".join(spoken))


def _normal_lines(texts: Collection[str]) -> set[str]:
    return {normal for one in texts for line in one.splitlines() if (normal := _normal(line))}


def _normal(text: str) -> str:
    """``text`` without its signs and spaces; all of it where it has nothing else."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or folded.strip()


WordsBeside = Callable[[str, int], Awaitable[None]]


class StepJournal(Protocol):
    """Where an active run is recorded."""

    async def record_step(self, step: NewStep) -> list[int]:
        """Commit a step; returns the keys of its tool calls, the first of which counts as begun."""
        ...

    async def start_call(self, pk: int) -> None:
        """Commit that a waiting call begins: from now on its effect may be in the world."""
        ...

    async def finish_call(self, outcome: CallOutcome) -> None:
        """Commit how a call ended, and that ``outcome.next_pk`` begins."""
        ...

    async def suspend(self, suspension: CallSuspension) -> None:
        """Commit that the run continues without a call's outcome, and that the next call begins."""
        ...


@dataclass(slots=True)
class RunRequest:
    """One run to be done: what to send, what to offer, on whose behalf, within what."""

    run_pk: int
    messages: list[ChatMessage]
    context: ToolExecutionContext
    model_calls: int
    can_see: bool = False
    """Whether the model takes pictures."""
    steps: list[RecordedStep] = field(default_factory=list)
    """What an earlier process recorded of this run; its requests replace ``messages``."""
    was_cut_off: bool = False
    """Whether the earlier process was killed: what its last model call cost is not on record."""
    later: DeferredCall | None = None
    """An earlier run's call: the model is shown it with its outcome, after ``messages``."""
    watch: Callable[[ToolCallRequest, ToolExecutionResult], None] | None = None
    is_gated: bool = False
    """Whether the timing gate decides first if the model is called at all."""
    discoveries: RunDiscoveries = field(default_factory=RunDiscoveries)
    """The deferred tools that were found before, and those that this run finds."""
    has_spoken: Callable[[], bool] = lambda: False
    """Whether a tool of the run has said something: then the final answer may be empty."""
    say: WordsBeside | None = None
    """Says what the model wrote beside its calls, before they are made; it is given the key of the
    first of them. None: that is not said."""
    accepts_nothing: bool = False
    """Whether an answer that is still empty when it was asked for once more is an answer."""


@dataclass(slots=True)
class RunResult:
    """The result of the loop. ``last_step`` is not on record yet: it is committed with the answer.

    ``ended_by`` is how a tool ended the run (an :class:`agent.run.tool_results.EndReason`), ""
    where the model came to an end of itself.
    """

    text: str
    last_step: NewStep | None
    calls: int
    input_tokens: int
    output_tokens: int
    out_of_calls: bool = False
    ended_by: str = ""
    planned: int = 0
    """Steps of the planner: none, where the timing gate did not open."""
    notes: tuple[str, ...] = ()
    """A note about the answer for readers of the record."""


@dataclass(slots=True)
class RunProgress:
    """The run so far. ``unrecorded`` are the messages that the next step's record will hold.

    ``number`` counts all steps, ``gate_steps`` those of the timing gate among them.
    """

    messages: list[ChatMessage]
    unrecorded: list[ChatMessage]
    number: int = 0
    gate_steps: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    faults: list[AnswerFault | None] = field(default_factory=list)
    """Of its answers, but for those of the timing gate; None for one without a fault."""
    following_ids: set[str] = field(default_factory=set)
    begin: int = 1
    """Of ``messages`` the current user's; those before may be dropped, but for the first."""

    def add(self, message: ChatMessage) -> None:
        self.messages.append(message)
        self.unrecorded.append(message)

    @property
    def is_opening(self) -> bool:
        """Whether the first request, which begins with the system message, is still to be made."""
        return bool(self.unrecorded) and self.unrecorded[0] is self.messages[0]

    def add_gate_step(self, gate: "RunProgress") -> None:
        """Count a step of the timing gate, and what it cost."""
        self.number += 1
        self.gate_steps += 1
        self.calls += gate.calls
        self.input_tokens += gate.input_tokens
        self.output_tokens += gate.output_tokens

    @property
    def planned(self) -> int:
        """Steps of the planner, which are limited."""
        return self.number - self.gate_steps

    def end(
        self,
        text: str,
        step: NewStep | None,
        *,
        out_of_calls: bool = False,
        ended_by: str = "",
        notes: tuple[str, ...] = (),
    ) -> RunResult:
        return RunResult(
            text,
            step,
            self.calls,
            self.input_tokens,
            self.output_tokens,
            out_of_calls,
            ended_by,
            self.planned,
            notes,
        )


class PendingCall(NamedTuple):
    """A call on record that is to be made; ``begun_at`` is when a process began it that did not
    live to finish it."""

    pk: int
    call: ToolCallRequest
    begun_at: datetime | None = None
