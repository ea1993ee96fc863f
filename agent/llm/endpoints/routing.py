"""Asking one endpoint after the other: the next one where the first is down, slow, limited, out of
money or refuses the request as such."""

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from agent.domain.endpoint import Ability, Endpoint
from agent.domain.errors import BudgetSpent, LLMError
from agent.llm.endpoints.embeddings import Embedder
from agent.llm.endpoints.endpoint_pool import EndpointClient, EndpointPool, EndpointSlot
from agent.llm.endpoints.transcription import Transcriber
from agent.llm.errors.refusals import RefusalKind
from agent.llm.requests.base import Attempt, LLMClient, LLMRequest, LLMResponse
from agent.llm.requests.tokens import estimate_text_tokens
from agent.llm.spending.meter import bound_tokens
from agent.llm.spending.spend_gate import SpendGate

R = TypeVar("R")

#: Tokens of an answer that are held where the endpoint's row sets no limit.
USUAL_OUTPUT = 2_000


class Route(Protocol):
    """The endpoints that are asked at this moment, and what is needed to ask them."""

    @property
    def pool(self) -> EndpointPool: ...

    @property
    def gate(self) -> SpendGate | None: ...

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The first to ask first."""
        ...

    def find_row(self, pk: int) -> Endpoint | None: ...


@dataclass(frozen=True, slots=True)
class Call(Generic[R]):
    """What is asked of an endpoint. ``ask`` gets its client, and whether no other one follows;
    ``count_tokens`` tells input and output that are held against budgets. ``may_be_cheaper``:
    where a budget does not allow it, the endpoint that its row names may answer."""

    ask: Callable[[EndpointClient, bool], Awaitable[R]]
    count_tokens: Callable[[Endpoint], tuple[int, int]]
    may_be_cheaper: bool = False


async def ask_in_order(
    route: Route, endpoints: Sequence[Endpoint], call: Call[R]
) -> tuple[R, tuple[Attempt, ...]]:
    """The first answer, and who was asked in vain before.

    Those that rest are left out; where all do, the one that rests shortest is asked. Raises the
    last :class:`LLMError`, with its ``attempts``. Cancellation ends it at once.
    """
    attempts: list[Attempt] = []
    ready = _order(route.pool, endpoints, attempts)
    try:
        return await _ask_each(route, ready, call, attempts)
    except BudgetSpent as spent:
        cheaper = None if spent.cheaper is None else route.find_row(spent.cheaper)
        if cheaper is None or not call.may_be_cheaper:
            raise
        return await _ask_each(route, [route.pool.find(cheaper)], call, attempts)
    except LLMError as error:
        slots = [route.pool.find(one) for one in endpoints]
        behind = slots[slots.index(ready[-1]) + 1 :]
        error.attempts = (*attempts, *(_note_rest(route.pool, slot) for slot in behind))
        raise


async def _ask_each(
    route: Route, slots: Sequence[EndpointSlot], call: Call[R], attempts: list[Attempt]
) -> tuple[R, tuple[Attempt, ...]]:
    pool = route.pool
    for place, slot in enumerate(slots, 1):
        is_last = place == len(slots)
        if not is_last and not slot.breaker.allows(pool.clock()):  # since the order was made
            attempts.append(_note_rest(pool, slot))
            continue
        started = time.monotonic()
        try:
            answer = await _ask_one(route, slot, call, is_last=is_last)
        except LLMError as error:
            attempts.append(_attempt(slot.endpoint, str(error), started))
            error.attempts = tuple(attempts)
            if is_last or isinstance(error, BudgetSpent):
                raise
        else:
            return answer, tuple(attempts)
    raise AssertionError("the last one answers or raises")


async def _ask_one(route: Route, slot: EndpointSlot, call: Call[R], *, is_last: bool) -> R:
    if route.gate is None or route.gate.is_idle:
        with route.pool.lend(slot) as client:
            return await call.ask(client, is_last)
    hold = await route.gate.hold(slot.endpoint, *call.count_tokens(slot.endpoint))
    try:
        with route.pool.lend(slot) as client:
            return await call.ask(client, is_last)
    finally:
        hold.release()


def _order(
    pool: EndpointPool, endpoints: Sequence[Endpoint], attempts: list[Attempt]
) -> list[EndpointSlot]:
    """The slots to ask, the first first; ``attempts`` get to know who is left out."""
    if not endpoints:
        raise LLMError("no endpoint can do this")
    slots = [pool.find(one) for one in endpoints]
    if len(slots) == 1:
        return slots
    now = pool.clock()
    ready = [slot for slot in slots if slot.breaker.allows(now)]
    ready = ready or [min(slots, key=lambda slot: slot.breaker.rests_until)]
    last = slots.index(ready[-1])
    attempts += [_note_rest(pool, slot) for slot in slots[:last] if slot not in ready]
    return ready


def _note_rest(pool: EndpointPool, slot: EndpointSlot) -> Attempt:
    seconds = slot.breaker.seconds_left(pool.clock())
    reason = f"not asked: it rests for another {seconds:.0f} s after: {slot.error}"
    return Attempt(slot.endpoint.label, slot.endpoint.model, reason, 0)


def _attempt(endpoint: Endpoint, reason: str, started: float) -> Attempt:
    milliseconds = round((time.monotonic() - started) * 1000)
    return Attempt(endpoint.label, endpoint.model, reason, milliseconds)


class RoutedModel:
    """The :class:`agent.llm.requests.base.LLMClient` of a role. It finds out at each call whom to
    ask, and owns nothing: closing it does nothing. Where nobody is to be asked, ``stand_in``
    answers."""

    def __init__(self, route: Route, stand_in: LLMClient) -> None:
        self._route = route
        self._stand_in = stand_in

    @property
    def name(self) -> str:
        """The model that would be asked first."""
        endpoints = self._route.endpoints()
        if not endpoints:
            return self._stand_in.name
        return _order(self._route.pool, endpoints, [])[0].endpoint.model

    @property
    def is_demo(self) -> bool:
        """Whether nobody is to be asked, and the demo model answers."""
        return not self._route.endpoints() and self._stand_in.is_demo

    @property
    def can_see(self) -> bool:
        """Whether one of the endpoints sees pictures."""
        return any(Ability.SEE in one.abilities for one in self._route.endpoints())

    async def complete(self, request: LLMRequest) -> LLMResponse:
        endpoints = self._route.endpoints()
        if not endpoints:
            return await self._stand_in.complete(request)
        if len(endpoints) > 1 and _has_pictures(request):
            seeing = tuple(one for one in endpoints if Ability.SEE in one.abilities)
            endpoints = seeing or endpoints

        once = replace(request, was_asked=False) if request.was_asked else request

        async def ask(client: EndpointClient, is_last: bool) -> LLMResponse:
            nonlocal request
            asked, request = request, once  # the first one alone was asked before
            response = await client.complete(asked, is_last=is_last)
            if not is_last and _is_filtered(response):
                error = LLMError("the answer was kept back by a content filter")
                error.kind = RefusalKind.CONTENT_FILTER
                raise error
            return response

        def count_tokens(endpoint: Endpoint) -> tuple[int, int]:
            wanted = map(endpoint.parameters.get, ("max_completion_tokens", "max_tokens"))
            most = next((one for one in wanted if type(one) is int), USUAL_OUTPUT)
            return bound_tokens(request), most

        call = Call(ask, count_tokens, may_be_cheaper=True)
        response, attempts = await ask_in_order(self._route, endpoints, call)
        return replace(response, attempts=attempts) if attempts else response

    async def close(self) -> None:
        """Nothing is held."""


def _has_pictures(request: LLMRequest) -> bool:
    contents = (message.get("content") for message in request.messages)
    return any(
        isinstance(part, dict) and part.get("type") == "image_url"
        for content in contents
        if isinstance(content, list)
        for part in content
    )


def _is_filtered(response: LLMResponse) -> bool:
    is_empty = not response.tool_calls and not response.text.strip()
    return is_empty and response.finish_reason == "content_filter"


class RoutedTranscriber:
    """Speech to text by the endpoints of a route."""

    def __init__(self, route: Route, endpoints: Sequence[Endpoint]) -> None:
        self._route = route
        self._endpoints = endpoints

    @property
    def name(self) -> str:
        """The model that would be asked first."""
        return _order(self._route.pool, self._endpoints, [])[0].endpoint.model

    async def transcribe(self, sound: bytes, ending: str, mime_type: str) -> str:
        """As :meth:`agent.llm.endpoints.transcription.Transcriber.transcribe`."""

        async def ask(client: EndpointClient, _: bool) -> str:
            return await Transcriber(client).transcribe(sound, ending, mime_type)

        call = Call(ask, lambda endpoint: (0, 0))
        words, _ = await ask_in_order(self._route, self._endpoints, call)
        return words


class RoutedEmbedder:
    """Vectors of one model, by the endpoints of a route that have it: vectors of different models
    cannot be compared."""

    def __init__(self, route: Route, endpoints: Sequence[Endpoint]) -> None:
        self._route = route
        self.name = endpoints[0].model
        """Vectors can be compared with those of the same name."""
        self._endpoints = tuple(one for one in endpoints if one.model == self.name)

    async def embed(self, texts: list[str]) -> list[bytes]:
        """As :meth:`agent.llm.endpoints.embeddings.Embedder.embed`."""

        async def ask(client: EndpointClient, _: bool) -> list[bytes]:
            return await Embedder(client).embed(texts)

        tokens = math.ceil(sum(map(estimate_text_tokens, texts)))
        call = Call(ask, lambda endpoint: (tokens, 0))
        vectors, _ = await ask_in_order(self._route, self._endpoints, call)
        return vectors
