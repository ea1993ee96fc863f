"""The clients of endpoints: made when they are first needed, closed when nothing names them any
more."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple, Protocol

from django.conf import settings

from agent.domain.endpoint import CHAT_ROLES, ROLE_ENVIRONMENTS, Ability, Endpoint, ModelRole
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.errors.refusals import RefusalKind
from agent.llm.requests.base import LLMRequest, LLMResponse
from tools.breaker import Breaker

#: What an endpoint must be able to do for a role.
NEEDS = {
    ModelRole.VISION: Ability.SEE,
    ModelRole.TRANSCRIPTION: Ability.TRANSCRIBE,
    ModelRole.EMBEDDING: Ability.EMBED,
}
#: What the environment names for these is asked for their role alone, unless it is chosen.
APART = frozenset({"CODER"})

#: As the last key of a choice: then those that are asked without one.
AS_USUAL = 0


@dataclass(frozen=True, slots=True)
class EndpointTable:
    """All endpoints that may be asked. It is replaced, never changed."""

    rows: Mapping[int, Endpoint] = field(default_factory=dict)
    """Enabled rows by key, those that mirror the environment included, in the order in which they
    are asked."""
    environment: Mapping[str, Endpoint] = field(default_factory=dict)
    """What the environment names, by what it is called there, unless its row is disabled."""
    defaults: Mapping[ModelRole, tuple[int, ...]] = field(default_factory=dict)
    """The lists of the default persona."""
    faults: Mapping[int, str] = field(default_factory=dict)
    """Why rows are left out that should be here."""

    def resolve(self, role: ModelRole, choice: Sequence[int] = ()) -> tuple[Endpoint, ...]:
        """The endpoints for ``role``, the first to ask first; ``choice`` are the keys that a
        persona names for it; :data:`AS_USUAL` may end them. What is no more, or disabled, is left
        out."""
        if choice and choice[-1] == AS_USUAL:
            usual = self.resolve(role)
            first = tuple(self.rows[pk] for pk in choice if pk in self.rows)
            return first + tuple(one for one in usual if one not in first)
        for keys in (choice, self.defaults.get(role, ())):
            if chosen := tuple(self.rows[pk] for pk in keys if pk in self.rows):
                return chosen
        named = self.environment.get(ROLE_ENVIRONMENTS.get(role, ""))
        own = (named,) if named is not None else ()
        if role in CHAT_ROLES:
            able = self.resolve(ModelRole.CHAT)
        else:
            need = NEEDS.get(role, Ability.CHAT)
            able = tuple(
                one
                for one in self.rows.values()
                if need in one.abilities and one.environment not in APART
            )
        return own + tuple(one for one in able if one != named)

    def find(self, key: int | str) -> Endpoint | None:
        """The endpoint of a row, or what the environment names where it has no row."""
        return self.rows.get(key) if isinstance(key, int) else self.environment.get(key)


def endpoint_key(endpoint: Endpoint) -> int | str:
    """What stays the same of ``endpoint`` when it is changed."""
    return endpoint.pk if endpoint.pk is not None else endpoint.environment


CHATS = frozenset({Ability.CHAT, Ability.TOOLS})


def environment_endpoints() -> dict[str, Endpoint]:
    """What the settings name, by what it is called there; a vision model is never the one that
    answers."""
    url, key = settings.UPSTREAM_ENDPOINT, settings.UPSTREAM_API_KEY
    coder_url, coder_key = settings.CODER_ENDPOINT, settings.CODER_API_KEY
    named = {
        "UPSTREAM": (url, key, settings.MODEL_NAME, CHATS),
        "VISUAL": (url, key, settings.VISUAL_MODEL_NAME, {Ability.SEE}),
        "CODER": (coder_url, coder_key, settings.CODER_MODEL_NAME, CHATS),
        "TRANSCRIBE": (url, key, settings.TRANSCRIBE_MODEL_NAME, {Ability.TRANSCRIBE}),
        "EMBEDDING": (url, key, settings.EMBEDDING_MODEL_NAME, {Ability.EMBED}),
    }
    return {
        name: Endpoint(
            url=url,
            keys=(key,) if key else (),
            model=model,
            abilities=frozenset(abilities),
            timeout_seconds=settings.LLM_TIMEOUT,
            environment=name,
        )
        for name, (url, key, model, abilities) in named.items()
        if url and (model or name == "UPSTREAM")
    }


def environment_table() -> EndpointTable:
    """The table of an installation without rows."""
    return EndpointTable(environment=environment_endpoints())


#: Failures in a row after which an endpoint rests.
MOST_FAILURES = 3
#: Seconds of the first rest; each further one is twice as long, up to the second figure.
FIRST_REST, LONGEST_REST = 30.0, 600.0
#: Seconds of a rest after what only a person can mend.
STANDING_REST = 300.0
#: Seconds that an endpoint may ask for itself.
LONGEST_WISH = 3_600.0

#: Refusals that only a person can mend.
STANDING = frozenset(
    {
        RefusalKind.WRONG_KEY,
        RefusalKind.WRONG_REGION,
        RefusalKind.NO_MONEY,
        RefusalKind.UNKNOWN_MODEL,
        RefusalKind.WRONG_ADDRESS,
    }
)
#: Refusals, and failures of no kind, that say nothing of the request.
PASSING = frozenset({"", RefusalKind.DOWN, RefusalKind.LIMITED})


class Fault(Enum):
    """What a failed call says of its endpoint."""

    PASSING = auto()
    """It is down or limited; it may be well again soon."""
    LATE = auto()
    """It cost its whole time limit. Nobody is to pay that twice."""
    STANDING = auto()
    """No request will be answered until somebody changes something."""
    REQUEST = auto()
    """It refused this request as such; it may answer others."""


def judge_fault(error: LLMError) -> Fault:
    """What ``error`` says of the endpoint that raised it."""
    if error.kind in STANDING and not error.is_repeated:
        return Fault.STANDING
    if error.kind not in PASSING or error.is_repeated:
        return Fault.REQUEST
    is_late = isinstance(error, LLMTimeout) and error.kind != RefusalKind.LIMITED
    return Fault.LATE if is_late else Fault.PASSING


def endpoint_breaker() -> Breaker:
    """The breaker of one endpoint."""
    return Breaker(MOST_FAILURES, FIRST_REST, LONGEST_REST)


def count_fault(breaker: Breaker, fault: Fault, now: float, wish: float = 0.0) -> bool:
    """Whether the endpoint rests from now on, or longer; ``wish``: the seconds of its
    Retry-After."""
    if fault is Fault.REQUEST:
        return False
    seconds = STANDING_REST if fault is Fault.STANDING else max(0.0, min(wish, LONGEST_WISH))
    return breaker.fail(now, seconds=seconds, at_once=fault is Fault.LATE)


#: Seconds of a call after which it says something of its endpoint that the caller gave it up: the
#: time of a run or of a tool may be shorter than that of the endpoint.
GIVEN_UP_SECONDS = 30.0


class EndpointClient(Protocol):
    """What asks one endpoint (:class:`agent.llm.client.client.OpenAIClient`)."""

    name: str

    async def complete(self, request: LLMRequest, *, is_last: bool = True) -> LLMResponse: ...

    async def post(self, path: str, **request: object) -> object: ...

    async def close(self) -> None: ...


class EndpointNews(NamedTuple):
    """How an endpoint fares, where that has changed. ``rest_seconds``: it is not asked for so
    long."""

    endpoint: Endpoint
    has_answered: bool = False
    error: str = ""
    rest_seconds: float = 0.0


def ignore_news(news: EndpointNews) -> None:
    """Nobody wants to know."""


@dataclass(slots=True, eq=False)
class EndpointSlot:
    """One endpoint with its client and its breaker."""

    endpoint: Endpoint
    client: EndpointClient | None = None
    breaker: Breaker = field(default_factory=endpoint_breaker)
    uses: int = 0
    """Calls under way."""
    is_retired: bool = False
    """Nothing names it any more."""
    is_well: bool = False
    """The last call was answered."""
    error: str = ""
    """Of the last call that failed, however long ago."""


class EndpointPool:
    """The slots of one process, on one event loop. ``connect`` makes a client, ``tell`` gets to
    know when an endpoint begins or ends to fail or to rest."""

    def __init__(
        self,
        connect: Callable[[Endpoint], EndpointClient],
        tell: Callable[[EndpointNews], None] = ignore_news,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._tell = tell
        self.clock = clock
        self._slots: dict[int | str, EndpointSlot] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def find(self, endpoint: Endpoint) -> EndpointSlot:
        """The slot of ``endpoint``; a new one for one that was changed, whose failures are of the
        past."""
        slot = self._slots.get(key := endpoint_key(endpoint))
        if slot is None or (slot.endpoint is not endpoint and slot.endpoint != endpoint):
            if slot is not None:
                self._retire(slot)
            slot = self._slots[key] = EndpointSlot(endpoint)
        return slot

    @contextlib.contextmanager
    def lend(self, slot: EndpointSlot) -> Iterator[EndpointClient]:
        """The client of ``slot``, which stays open until the end. An :class:`LLMError` that it
        raises is counted by the breaker, and so is a call that was cancelled late."""
        if slot.client is None:
            slot.client = self._connect(slot.endpoint)
        slot.uses += 1
        begun = self.clock()
        is_try = slot.breaker.begin(begun)
        try:
            yield slot.client
        except LLMError as error:
            self._fail(slot, error)
            raise
        except asyncio.CancelledError:
            if (seconds := self.clock() - begun) >= GIVEN_UP_SECONDS:
                words = f"no answer from the model within {seconds:.0f} s, when it was given up"
                self._fail(slot, LLMTimeout(words))
            raise
        else:
            if not slot.is_well:
                slot.is_well = True
                slot.breaker.succeed()
                self._tell(EndpointNews(slot.endpoint, has_answered=True))
        finally:
            slot.breaker.end(is_try=is_try)
            slot.uses -= 1
            if slot.is_retired:
                self._retire(slot)

    def keep_only(self, is_named: Callable[[Endpoint], bool]) -> None:
        """Retire the slots of endpoints that nothing names any more."""
        for key, slot in list(self._slots.items()):
            if not is_named(slot.endpoint):
                self._retire(self._slots.pop(key))

    async def close(self) -> None:
        """Close all clients; calls under way fail."""
        slots, self._slots = list(self._slots.values()), {}
        for slot in slots:
            if slot.client is not None:
                await slot.client.close()
                slot.client = None
        await asyncio.gather(*self._closing)

    def _retire(self, slot: EndpointSlot) -> None:
        slot.is_retired = True
        if slot.uses or slot.client is None:
            return
        client, slot.client = slot.client, None
        task = asyncio.get_running_loop().create_task(client.close(), name="endpoint-close")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _fail(self, slot: EndpointSlot, error: LLMError) -> None:
        fault, now, words = judge_fault(error), self.clock(), str(error)
        rests = count_fault(slot.breaker, fault, now, error.retry_seconds)
        was_well = slot.is_well
        slot.is_well &= fault is Fault.REQUEST
        if rests or was_well != slot.is_well or words != slot.error:
            slot.error = words
            rest = slot.breaker.seconds_left(now)
            self._tell(EndpointNews(slot.endpoint, error=words, rest_seconds=rest))
