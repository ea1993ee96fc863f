"""What calls of models use and cost, and whether one may be made."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from agent.domain.endpoint import Endpoint, TokenPrices
from agent.llm.requests.base import LLMRequest, encode_json
from agent.llm.requests.tokens import (
    MESSAGE,
    TOOL,
    estimate_message_tokens,
    estimate_text_tokens,
    estimate_tools_tokens,
)
from tools import metrics

#: More is no number of tokens.
MOST = 2**31
_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
#: DeepSeek names what it had kept "prompt_cache_hit_tokens", Moonshot "cached_tokens".
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_REASONING = ("reasoning_tokens",)


class Usage(NamedTuple):
    """Tokens of a call: ``cached`` are part of ``input``, ``reasoning`` of ``output``."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output


def read_usage(answer: object) -> Usage | None:
    """What ``answer``, the body of a response, reports; None if that is nothing.

    Gemini and xAI leave the thoughts out of the output and count them in the total alone, so what
    the total holds beyond input and output is output too.
    """
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, Mapping):
        return None
    given, said = _first(usage, _INPUT), _first(usage, _OUTPUT)
    total = _first(usage, ("total_tokens",))
    if not (given or said):
        return Usage(input=total) if total else None
    cached = _detailed(usage, _CACHED, ("prompt_tokens_details", "input_tokens_details"))
    details = ("completion_tokens_details", "output_tokens_details")
    reasoning = _detailed(usage, _REASONING, details)
    beyond = max(0, total - given - said) if given and total else 0
    said += beyond
    return Usage(given, min(cached, given), said, min(max(reasoning, beyond), said))


def _detailed(usage: Mapping[str, object], names: tuple[str, ...], groups: tuple[str, ...]) -> int:
    found = (_first(part, names) for group in groups if isinstance(part := usage.get(group), dict))
    return max(found, default=0) or _first(usage, names)


def _first(usage: Mapping[str, object], names: tuple[str, ...]) -> int:
    for name in names:
        if type(one := usage.get(name)) is int and 0 < one < MOST:
            return one
    return 0


NANO_PER_TOKEN = 1_000
"""Billionths for each token at a price of 1 per million."""


def compute_cost_nano(prices: TokenPrices, usage: Usage) -> int | None:
    """Billionths of the prices' currency for ``usage``; None where a price that it takes is not
    known.

    Cached input and reasoning have the price of other input and output where they have none of
    their own.
    """
    if (prices.input is None and usage.input) or (prices.output is None and usage.output):
        return None
    if prices.input is None and prices.output is None:
        return None
    given, said = prices.input or 0.0, prices.output or 0.0
    cached = given if prices.cached is None else prices.cached
    reasoning = said if prices.reasoning is None else prices.reasoning
    return round(
        NANO_PER_TOKEN
        * (
            (usage.input - usage.cached) * given
            + usage.cached * cached
            + (usage.output - usage.reasoning) * said
            + usage.reasoning * reasoning
        )
    )


# What model calls cost, and who for: one meter for the whole process, all callers and endpoints.

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


def spending_for(**changes: Any) -> AbstractContextManager[None]:
    """Have the model calls inside, also those of tasks begun there, count for a scope with
    ``changes``, the fields of :class:`SpendScope`."""
    return spending_in(replace(scope.get(), **changes))


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
    metrics.labelled(metrics.TOKENS, cost.endpoint_name, "input").inc(cost.input)
    metrics.labelled(metrics.TOKENS, cost.endpoint_name, "output").inc(cost.output)
    if cost.cost_nano:
        metrics.labelled(metrics.COST, cost.endpoint_name, cost.currency).inc(cost.cost_nano / 1e9)


meter = SpendMeter()


def bound_tokens(request: LLMRequest) -> int:
    """The tokens that a request hardly exceeds, at a small part of what an estimate takes: a
    character of a usual message counts as one, a tool as :data:`TOOL`."""
    each = [
        MESSAGE + len(content)
        if isinstance(content := message.get("content"), str)
        and len(content) <= USUAL
        and "tool_calls" not in message
        else math.ceil(estimate_message_tokens(message))
        for message in request.messages
    ]
    return len(request.tools) * TOOL + sum(each)


def estimate_tokens(request: LLMRequest, text: str) -> int:
    """The tokens that a call probably cost: what was sent, and the ``text`` that came."""
    sent = sum(map(estimate_message_tokens, request.messages))
    tools = estimate_tools_tokens(encode_json(request.tools)) if request.tools else 0
    return math.ceil(sent + tools + estimate_text_tokens(text))


class SpendHold(Protocol):
    """What one call under way may cost, counted as spent until it is released."""

    def release(self) -> None:
        """The call is over; what it did cost is counted by itself. A second time does nothing."""
        ...


class SpendGate(Protocol):
    """Whether a call may be paid for. Who and what for is the scope of the task that asks
    (:data:`agent.llm.spending.scope`)."""

    @property
    def is_idle(self) -> bool:
        """Whether no budget bounds any call: then the tokens of a call need not be estimated."""
        ...

    async def hold(self, endpoint: Endpoint, input_tokens: int, output_tokens: int) -> SpendHold:
        """Count what a call of so many tokens would cost at most.

        Raises :class:`agent.domain.errors.BudgetSpent` where that is more than is left.
        """
        ...
