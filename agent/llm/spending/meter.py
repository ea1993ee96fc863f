"""What model calls cost, and who for: one meter for the whole process, all callers and
endpoints."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from agent.llm.requests.base import LLMRequest
from agent.llm.requests.bodies import encode_json
from agent.llm.requests.tokens import (
    MESSAGE,
    TOOL,
    estimate_message_tokens,
    estimate_text_tokens,
    estimate_tools_tokens,
)
from tools import metrics

#: Characters of a message from which on its tokens are estimated: of one sign again and again they
#: are far fewer.
USUAL = 24_000


@dataclass(frozen=True, slots=True)
class SpendScope:
    """Who and what the model calls of a task are for: the subjects of sums and budgets, each ""
    outside of one."""

    account: str = ""
    """``platform:account``."""
    chat: str = ""
    """The chat's place."""
    person: str = ""
    """As :func:`agent.record.sums.tallies.person_subject` names people."""
    persona: str = ""
    tool: str = ""
    """The tool that is being called."""
    is_owner: bool = False
    """Whether the person is an owner of the account."""
    is_outcome: bool = False
    """Whether they tell the outcome of an earlier call, for which budgets have a reserve."""


scope: ContextVar[SpendScope] = ContextVar("scope", default=SpendScope())  # noqa: B039 - frozen


@contextmanager
def spending_for(**changes: Any) -> Iterator[None]:
    """Have the model calls inside, also those of tasks begun there, count for a scope with
    ``changes``, the fields of :class:`SpendScope`."""
    with spending_in(replace(scope.get(), **changes)):
        yield


@contextmanager
def spending_in(whole: SpendScope) -> Iterator[None]:
    """As :func:`spending_for`, for another scope altogether."""
    token = scope.set(whole)
    try:
        yield
    finally:
        scope.reset(token)


class CallCost(NamedTuple):
    """What one model call cost. ``cached`` is part of ``input``, ``reasoning`` of ``output``."""

    endpoint_pk: int | None = None
    endpoint_name: str = ""
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    cost_nano: int = 0
    """Billionths of ``currency``."""
    currency: str = ""
    """"" for a call without a price."""

    @property
    def tokens(self) -> int:
        return self.input + self.output


class Spend(NamedTuple):
    """What a call cost, and who it was for."""

    cost: CallCost
    scope: SpendScope


class SpendMeter:
    """Passes on what each call cost; until it is known where to, nothing is kept."""

    def __init__(self) -> None:
        self._spend: Callable[[Spend], None] | None = None

    def set_receiver(self, spend: Callable[[Spend], None] | None) -> None:
        """Have ``spend`` called, on the loop that asks models, with the cost of each call from now
        on."""
        self._spend = spend

    def count_call(self, cost: CallCost) -> None:
        """Count a call for the scope of the present task."""
        _count_for_metrics(cost)
        if (cost.input or cost.output or cost.cost_nano) and self._spend is not None:
            self._spend(Spend(cost, scope.get()))


def _count_for_metrics(cost: CallCost) -> None:
    metrics.TOKENS.labels(cost.endpoint_name, "input").inc(cost.input)
    metrics.TOKENS.labels(cost.endpoint_name, "output").inc(cost.output)
    if cost.cost_nano:
        metrics.COST.labels(cost.endpoint_name, cost.currency).inc(cost.cost_nano / 1e9)


meter = SpendMeter()


def bound_tokens(request: LLMRequest) -> int:
    """The tokens that a request hardly exceeds, at a small part of what an estimate takes: a
    character of a usual message counts as one, a tool as :data:`TOOL`."""
    return len(request.tools) * TOOL + sum(
        MESSAGE + len(content)
        if isinstance(content := message.get("content"), str)
        and len(content) <= USUAL
        and "tool_calls" not in message
        else math.ceil(estimate_message_tokens(message))
        for message in request.messages
    )


def estimate_tokens(request: LLMRequest, text: str) -> int:
    """The tokens that a call probably cost: what was sent, and the ``text`` that came."""
    sent = sum(map(estimate_message_tokens, request.messages))
    tools = estimate_tools_tokens(encode_json(request.tools)) if request.tools else 0
    return math.ceil(sent + tools + estimate_text_tokens(text))
