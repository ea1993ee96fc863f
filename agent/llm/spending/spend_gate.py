"""What stands between a run and an endpoint's price: budgets, asked before each call."""

from typing import Protocol

from agent.domain.endpoint import Endpoint


class SpendHold(Protocol):
    """What one call under way may cost, counted as spent until it is released."""

    def release(self) -> None:
        """The call is over; what it did cost is counted by itself. A second time does nothing."""
        ...


class SpendGate(Protocol):
    """Whether a call may be paid for. Who and what for is the scope of the task that asks
    (:data:`agent.llm.spending.meter.scope`)."""

    @property
    def is_idle(self) -> bool:
        """Whether no budget bounds any call: then the tokens of a call need not be estimated."""
        ...

    async def hold(self, endpoint: Endpoint, input_tokens: int, output_tokens: int) -> SpendHold:
        """Count what a call of so many tokens would cost at most.

        Raises :class:`agent.domain.errors.BudgetSpent` where that is more than is left.
        """
        ...
