"""Who is asked for what in this process: the endpoints as they are now, and their clients."""

import asyncio
import contextlib
import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from agent.domain.endpoint import Ability, Endpoint, ModelRole
from agent.domain.errors import HAN, PLACEHOLDER, BudgetSpent, LLMError
from agent.llm.endpoints.embeddings import Embedder
from agent.llm.endpoints.endpoint_pool import (
    EndpointClient,
    EndpointNews,
    EndpointPool,
    EndpointSlot,
    EndpointTable,
    endpoint_key,
    ignore_news,
)
from agent.llm.endpoints.transcription import Transcriber
from agent.llm.errors.refusals import RefusalKind
from agent.llm.requests.base import Attempt, LLMClient, LLMRequest, LLMResponse, ToolCallRequest
from agent.llm.requests.messages import content_text, strip_frame
from agent.llm.requests.tokens import estimate_text_tokens
from agent.llm.spending import SpendGate, bound_tokens

R = TypeVar("R")

#: Tokens of an answer that are held where the endpoint's row sets no limit.
USUAL_OUTPUT = 2_000


@dataclass(frozen=True, slots=True)
class EndpointCall(Generic[R]):
    """What is asked of an endpoint. ``ask`` gets its client, and whether no other one follows;
    ``count_tokens`` tells input and output that are held against budgets. ``may_be_cheaper``:
    where a budget does not allow it, the endpoint that its row names may answer."""

    ask: Callable[[EndpointClient, bool], Awaitable[R]]
    count_tokens: Callable[[Endpoint], tuple[int, int]]
    may_be_cheaper: bool = False


async def ask_in_order(
    route: "RoleRoute", endpoints: Sequence[Endpoint], call: EndpointCall[R]
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
    route: "RoleRoute",
    slots: Sequence[EndpointSlot],
    call: EndpointCall[R],
    attempts: list[Attempt],
) -> tuple[R, tuple[Attempt, ...]]:
    pool = route.pool
    for number, slot in enumerate(slots, 1):
        is_last = number == len(slots)
        if not is_last and not slot.breaker.allows(pool.clock()):  # since the order was made
            attempts.append(_note_rest(pool, slot))
            continue
        started = time.monotonic()
        try:
            answer = await _ask_one(route, slot, call, is_last=is_last)
        except LLMError as error:
            took_ms = round((time.monotonic() - started) * 1000)
            endpoint = slot.endpoint
            attempts.append(Attempt(endpoint.label, endpoint.model, str(error), took_ms))
            error.attempts = tuple(attempts)
            if is_last or isinstance(error, BudgetSpent):
                raise
        else:
            return answer, tuple(attempts)
    raise AssertionError("the last one answers or raises")


async def _ask_one(
    route: "RoleRoute", slot: EndpointSlot, call: EndpointCall[R], *, is_last: bool
) -> R:
    gate, hold = route.gate, None
    if gate is not None and not gate.is_idle:
        hold = await gate.hold(slot.endpoint, *call.count_tokens(slot.endpoint))
    try:
        with route.pool.lend(slot) as client:
            return await call.ask(client, is_last)
    finally:
        if hold is not None:
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


def _name_first(route: "RoleRoute", endpoints: Sequence[Endpoint]) -> str:
    """The model that would be asked first."""
    if len(endpoints) == 1:
        return endpoints[0].model
    return _order(route.pool, endpoints, [])[0].endpoint.model


def _note_rest(pool: EndpointPool, slot: EndpointSlot) -> Attempt:
    seconds = slot.breaker.seconds_left(pool.clock())
    reason = f"not asked: it rests for another {seconds:.0f} s after: {slot.error}"
    return Attempt(slot.endpoint.label, slot.endpoint.model, reason, 0)


class RoutedModel:
    """The :class:`agent.llm.requests.base.LLMClient` of a role. It finds out at each call whom to
    ask, and owns nothing: closing it does nothing. Where nobody is to be asked, ``stand_in``
    answers."""

    def __init__(self, route: "RoleRoute", stand_in: LLMClient) -> None:
        self._route = route
        self._stand_in = stand_in

    @property
    def name(self) -> str:
        """The model that would be asked first."""
        endpoints = self._route.endpoints()
        return _name_first(self._route, endpoints) if endpoints else self._stand_in.name

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
            is_empty = not response.tool_calls and not response.text.strip()
            if not is_last and is_empty and response.finish_reason == "content_filter":
                error = LLMError("the answer was kept back by a content filter")
                error.kind = RefusalKind.CONTENT_FILTER
                raise error
            return response

        def count_tokens(endpoint: Endpoint) -> tuple[int, int]:
            wanted = map(endpoint.parameters.get, ("max_completion_tokens", "max_tokens"))
            most = next((one for one in wanted if type(one) is int), USUAL_OUTPUT)
            return bound_tokens(request), most

        call = EndpointCall(ask, count_tokens, may_be_cheaper=True)
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


class RoutedTranscriber:
    """Speech to text by the endpoints of a route."""

    def __init__(self, route: "RoleRoute", endpoints: Sequence[Endpoint]) -> None:
        self._route = route
        self._endpoints = endpoints

    @property
    def name(self) -> str:
        """The model that would be asked first."""
        return _name_first(self._route, self._endpoints)

    async def transcribe(self, sound: bytes, ending: str, mime_type: str) -> str:
        """As :meth:`agent.llm.endpoints.transcription.Transcriber.transcribe`."""

        async def ask(client: EndpointClient, _: bool) -> str:
            return await Transcriber(client).transcribe(sound, ending, mime_type)

        call = EndpointCall(ask, lambda endpoint: (0, 0))
        words, _ = await ask_in_order(self._route, self._endpoints, call)
        return words


class RoutedEmbedder:
    """Vectors of one model, by the endpoints of a route that have it: vectors of different models
    cannot be compared."""

    def __init__(self, route: "RoleRoute", endpoints: Sequence[Endpoint]) -> None:
        self._route = route
        self.name = endpoints[0].model
        """Vectors can be compared with those of the same name."""
        self._endpoints = tuple(one for one in endpoints if one.model == self.name)

    async def embed(self, texts: list[str]) -> list[bytes]:
        """As :meth:`agent.llm.endpoints.embeddings.Embedder.embed`."""

        async def ask(client: EndpointClient, _: bool) -> list[bytes]:
            return await Embedder(client).embed(texts)

        tokens = math.ceil(sum(map(estimate_text_tokens, texts)))
        call = EndpointCall(ask, lambda endpoint: (tokens, 0))
        vectors, _ = await ask_in_order(self._route, self._endpoints, call)
        return vectors


# The model that answers when no endpoint is configured: offline, deterministic, and plain about
# it.
#
# It shows a newcomer the whole way of a message, tool call included, before any key is bought. It
# knows the tools for the weather and for game versions, and nothing else.

#: Characters of a message that are read: patterns take the square of them.
READ_CHARS = 200
TOOL_NAMES = {"city": "get_weather", "game": "get_game_version"}
PATTERNS = [
    (
        "city",
        re.compile(
            r"weather\s+(?:like\s+)?(?:in|of|for|at)\s+([A-Za-z][A-Za-z .'-]*)", re.IGNORECASE
        ),
    ),
    ("city", re.compile(r"([A-Za-z][A-Za-z.'-]*)(?:'s)?\s+weather", re.IGNORECASE)),
    (
        "city",
        re.compile(
            r"(?:查一下|查查|看看|告诉我|请问|问一下|帮我查)?([\u4e00-\u9fff]{2,8}?)(?:今天|明天|现在|这里)?的?天气"
        ),
    ),
    (
        "game",
        re.compile(r"(?:latest\s+)?version\s+(?:of|for)\s+([A-Za-z0-9][\w .:'-]*)", re.IGNORECASE),
    ),
    (
        "game",
        re.compile(
            r"([A-Za-z0-9][\w.:'-]*(?: [A-Z0-9][\w.:'-]*)*)\s*(?:的)?(?:最新)?(?:版本|version)",
            re.IGNORECASE,
        ),
    ),
    (
        "game",
        re.compile(
            r"(?:查一下|查查|看看|告诉我|请问|问一下|帮我查)?([\u4e00-\u9fff·]{2,12}?)(?:现在|目前)?的?(?:最新)?版本"
        ),
    ),
]
ABOUT = {
    "zh": "这里是内置的演示模型(还没有配置 UPSTREAM_ENDPOINT),我收到了:「{text}」。"
    "可以问我「北京天气」或「我的世界最新版本」,看看工具调用是什么样子。",
    "en": "This is the built-in demo model (UPSTREAM_ENDPOINT is not set). You said: “{text}”. "
    "Ask me for the weather in Paris or the latest version of Minecraft to see a tool call.",
}
AFTER_TOOL = {
    "zh": "{result}(由内置的演示模型回答)",
    "en": "{result} (answered by the built-in demo model)",
}


class DemoModel:
    """Answers from rules. Asks for a tool when it is offered and the words call for it."""

    name = "demo"
    is_demo = True

    async def complete(self, request: LLMRequest) -> LLMResponse:
        last = request.messages[-1]
        if last["role"] == "tool":
            results = [m["content"] for m in request.messages if m["role"] == "tool"]
            return _say(AFTER_TOOL[_language(_question(request))].format(result=results[-1]))
        text = _question(request)
        call = _wanted_call(text, {definition["name"] for definition in request.tools})
        return _call(*call) if call else _say(ABOUT[_language(text)].format(text=text))

    async def close(self) -> None:
        """Nothing is held."""


def _question(request: LLMRequest) -> str:
    content = next((m["content"] for m in reversed(request.messages) if m["role"] == "user"), "")
    words, _, _ = strip_frame(content_text(content)).partition("\n⟦")  # fences stand behind them
    return words.strip()[:READ_CHARS]


def _language(text: str) -> str:
    return "zh" if HAN.search(PLACEHOLDER.sub("", text)) or not text else "en"


def _wanted_call(text: str, offered: set[str]) -> tuple[str, dict[str, str]] | None:
    for argument, pattern in PATTERNS:
        match = pattern.search(text)
        if match and TOOL_NAMES[argument] in offered and (value := match[1].strip(" .?!,")):
            return TOOL_NAMES[argument], {argument: value}
    return None


def _say(text: str) -> LLMResponse:
    message = {"role": "assistant", "content": text}
    return LLMResponse(text, (), message, message, finish_reason="stop")


def _call(name: str, arguments: dict[str, str]) -> LLMResponse:
    raw = json.dumps(arguments, ensure_ascii=False)
    call: dict[str, Any] = {
        "id": f"call_demo_{name}",
        "type": "function",
        "function": {"name": name, "arguments": raw},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return LLMResponse(
        "", (ToolCallRequest(call["id"], name, raw),), message, message, finish_reason="tool_calls"
    )


#: Lists of endpoints that are remembered until the next change.
MOST_LISTS = 1_000


class EndpointBook:
    """The endpoints of one process. Used on one event loop, but for :meth:`replace_table`."""

    def __init__(
        self,
        pool: EndpointPool,
        table: EndpointTable,
        gate: SpendGate | None = None,
        tell: Callable[[EndpointNews], None] = ignore_news,
    ) -> None:
        self.pool = pool
        self.gate = gate
        """Asked before each call; None: calls cost nothing that counts."""
        self._tell = tell
        self._demo = DemoModel()
        self._lists: dict[tuple[ModelRole, tuple[int, ...]], tuple[Endpoint, ...]] = {}
        self.table = table
        self._seen = table
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Have clients that nobody needs any more closed on the running loop, as soon as that is
        known."""
        self._loop = asyncio.get_running_loop()

    def replace_table(self, table: EndpointTable) -> None:
        """Have the next model call obey ``table``. Runs in the database thread."""
        self.table = table
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._obey)

    def endpoints(self, role: ModelRole, choice: Sequence[int] = ()) -> tuple[Endpoint, ...]:
        """The endpoints that are asked for ``role``, the first to ask first."""
        if self.table is not self._seen:
            self._obey()
        key = (role, tuple(choice))
        found = self._lists.get(key)
        if found is None:
            if len(self._lists) >= MOST_LISTS:
                self._lists.clear()
            found = self._lists[key] = self._seen.resolve(role, choice)
        return found

    def has(self, role: ModelRole) -> bool:
        """Whether anybody can be asked for ``role``; the demo model does not count."""
        return bool(self.endpoints(role))

    def model(self, role: ModelRole, choice: Sequence[int] = ()) -> RoutedModel:
        """What is asked for ``role``; ``choice`` are keys of rows in order, as a persona has them.

        It costs nothing, holds nothing, and goes with every change of the rows. Where nobody can be
        asked, the demo model answers chats; for other roles ask :meth:`has` first.
        """
        return RoutedModel(RoleRoute(self, role, tuple(choice)), self._demo)

    def name_model(self, role: ModelRole, choice: Sequence[int] = ()) -> str:
        """The model that is asked first for ``role``. May be called in any thread."""
        found = self.table.resolve(role, choice)
        return found[0].model if found else self._demo.name

    def find_model(self, role: ModelRole, choice: Sequence[int] = ()) -> LLMClient | None:
        """As :meth:`model`; None where nobody can be asked."""
        return self.model(role, choice) if self.endpoints(role, choice) else None

    def transcriber(self, choice: Sequence[int] = ()) -> RoutedTranscriber | None:
        """What turns voice into words at this moment; None where nothing can."""
        found = self.endpoints(ModelRole.TRANSCRIPTION, choice)
        route = RoleRoute(self, ModelRole.TRANSCRIPTION)
        return RoutedTranscriber(route, found) if found else None

    def embedder(self) -> RoutedEmbedder | None:
        """What compares meanings at this moment; None where nothing can."""
        found = self.endpoints(ModelRole.EMBEDDING)
        return RoutedEmbedder(RoleRoute(self, ModelRole.EMBEDDING), found) if found else None

    async def close(self) -> None:
        """Close all clients; calls under way fail."""
        self._loop = None
        await self.pool.close()

    def _obey(self) -> None:
        """On the loop: the table was replaced."""
        table = self.table
        if table is self._seen:
            return
        self._lists.clear()
        known, self._seen = self._seen.faults, table
        self.pool.keep_only(lambda one: table.find(endpoint_key(one)) == one)
        for pk, words in table.faults.items() - known.items():
            self._tell(EndpointNews(Endpoint("", pk=pk), error=words))


@dataclass(frozen=True, slots=True)
class RoleRoute:
    """The endpoints that are asked for one role at this moment, and what is needed to ask them."""

    book: EndpointBook
    role: ModelRole
    choice: tuple[int, ...] = ()

    @property
    def pool(self) -> EndpointPool:
        return self.book.pool

    @property
    def gate(self) -> SpendGate | None:
        return self.book.gate

    def endpoints(self) -> tuple[Endpoint, ...]:
        return self.book.endpoints(self.role, self.choice)

    def find_row(self, pk: int) -> Endpoint | None:
        return self.book.table.rows.get(pk)
