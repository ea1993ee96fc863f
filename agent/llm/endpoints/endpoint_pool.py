"""The clients of endpoints: made when they are first needed, closed when nothing names them any
more."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError, LLMTimeout
from agent.llm.endpoints.breaker import Fault, count_fault, endpoint_breaker, judge_fault
from agent.llm.endpoints.endpoint_table import endpoint_key
from agent.llm.requests.base import LLMRequest, LLMResponse
from tools.breaker import Breaker

#: Seconds of a call after which it says something of its endpoint that the caller gave it up: the
#: time of a run or of a tool may be shorter than that of the endpoint.
GIVEN_UP_SECONDS = 30.0


class EndpointClient(Protocol):
    """What asks one endpoint (:class:`agent.llm.client.client.OpenAIClient`)."""

    name: str

    async def complete(self, request: LLMRequest, *, is_last: bool = True) -> LLMResponse: ...

    async def post(self, path: str, **request: Any) -> object: ...

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
                self._recover(slot)
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

    def _recover(self, slot: EndpointSlot) -> None:
        slot.is_well = True
        slot.breaker.succeed()
        self._tell(EndpointNews(slot.endpoint, has_answered=True))
