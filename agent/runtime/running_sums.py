"""What is spent and held of one sum, and the calls that wait until others give back what they
hold. On one event loop."""

import asyncio
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field

from agent.domain.budgets import TOKENS
from agent.llm.spending import CallCost
from agent.record.sums.spend_book import SpentAnswer


@dataclass(slots=True, eq=False)
class RunningSum:
    """What one subject spent from a day on, and what calls under way may cost it: by unit, which is
    a currency or tokens."""

    spent: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    read_at: float | None = None
    reading: "asyncio.Future[SpentAnswer | None] | None" = None
    turns: "list[Turn]" = field(default_factory=list)
    """Of calls that wait until others give back what they hold, the first to come first."""

    def add(self, cost: CallCost) -> None:
        self.spent[TOKENS] += cost.tokens
        if cost.cost_nano:
            self.spent[cost.currency] += cost.cost_nano

    def wake(self) -> None:
        """Have the first of those that wait look again; when it leaves, the next one does."""
        if self.turns:
            self.turns[0].wake()


class Turn:
    """The place of one call among those that wait. It waits for one sum at a time."""

    def __init__(self, arrival: int) -> None:
        self.arrival = arrival
        self._total: RunningSum | None = None
        self._woken: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Let it look again, where it waits."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def is_before(self, total: RunningSum) -> bool:
        """Whether nobody who came earlier waits for ``total``."""
        return not total.turns or self.arrival <= total.turns[0].arrival

    async def wait(self, total: RunningSum, until: float) -> None:
        """Wait until it may be worth while to look again. Raises :class:`TimeoutError` after
        ``until``, a time of the loop."""
        if total is not self._total:
            self.leave()
            self._total = total
            insort(total.turns, self, key=lambda turn: turn.arrival)
        self._woken = asyncio.get_running_loop().create_future()
        async with asyncio.timeout_at(until):
            await self._woken

    def leave(self) -> None:
        """Wait no more; the next one looks."""
        if self._total is not None:
            self._total.turns.remove(self)
            self._total.wake()
            self._total = None


class Hold:
    """What one call may cost, in the sums of all budgets that it counts against."""

    def __init__(self, held: "list[tuple[RunningSum, str, int]]") -> None:
        self._held = held

    def release(self) -> None:
        held, self._held = self._held, []
        for total, unit, amount in held:
            total.held[unit] -= amount
            total.wake()
