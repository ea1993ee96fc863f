"""A run as the loop sees it: the request, its state, and its result."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from agent.llm.requests.base import ToolCallRequest
from agent.llm.requests.messages import ChatMessage
from agent.record.runs.deferred_calls import CallSuspension, DeferredCall
from agent.record.runs.runs import RecordedStep
from agent.record.runs.steps import CallOutcome, NewStep
from agent.run.answers import AnswerFault
from agent.run.toolbox import RunDiscoveries
from tools.contract import ToolExecutionContext, ToolExecutionResult

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

    ``ended_by`` is how a tool ended the run (one of :class:`agent.run.flow.EndReason`), "" where
    the model came to an end of itself.
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
