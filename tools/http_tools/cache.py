"""Answers that are kept for a while, and requests that several calls wait for."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tools.contract import ToolExecutionResult

ENTRIES = 1_000
BYTES = 64 * 2**20


Ask = Callable[[], Coroutine[Any, Any, ToolExecutionResult]]


@dataclass(slots=True, eq=False)
class _Flight:
    """One request under way, and how many calls wait for it."""

    task: asyncio.Task[ToolExecutionResult]
    waiting: int = 0


class AnswerCache:
    """Used from one event loop. ``clock`` counts monotonic seconds.

    Only successes are kept; of what is kept, the longest unused goes first.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[ToolExecutionResult, float]] = OrderedDict()
        self._bytes = 0
        self._flights: dict[bytes, _Flight] = {}

    async def result(self, key: bytes, seconds: float, ask: Ask) -> ToolExecutionResult:
        """The value cached under ``key``, or the result of ``ask``, which is then cached for
        ``seconds``.

        Concurrent calls with the same key share one request. When cancelled, the request continues
        if another call waits for it.
        """
        result, until = self._kept.get(key, (None, 0.0))
        if result is not None and until > self._clock():
            self._kept.move_to_end(key)
            return result
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(
                asyncio.get_running_loop().create_task(self._asked(key, seconds, ask))
            )
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.task.done() or not flight.waiting:
                flight.task.cancel()
                if self._flights.get(key) is flight:
                    del self._flights[key]

    def close(self) -> None:
        """Give up every request under way; callers that wait for one are cancelled."""
        for flight in self._flights.values():
            flight.task.cancel()

    async def _asked(self, key: bytes, seconds: float, ask: Ask) -> ToolExecutionResult:
        result = await ask()
        self._drop(key)
        if result.success:
            self._kept[key] = result, self._clock() + seconds
            self._bytes += estimate_size(result)
            while len(self._kept) > ENTRIES or self._bytes > BYTES:
                self._drop(next(iter(self._kept)))
        return result

    def _drop(self, key: bytes) -> None:
        if kept := self._kept.pop(key, None):
            self._bytes -= estimate_size(kept[0])


def estimate_size(result: ToolExecutionResult) -> int:
    """About how many bytes ``result`` takes in memory; of JSON, at most."""
    text = len(result.content)
    values = 24 * text if isinstance(result.structured_content, dict | list) else 0
    return 2_000 + 2 * text + values + sum(len(item.data) for item in result.content_items)
