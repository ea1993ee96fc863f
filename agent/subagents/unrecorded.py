"""The journal of a run that is not on record: of an operator's test run, which is not either."""

from agent.record.deferred_calls import CallSuspension
from agent.record.steps import CallOutcome, NewStep


class NullJournal:
    """A :class:`agent.run.engine.Journal` that keeps nothing; its tool calls have the key 0."""

    async def record_step(self, step: NewStep) -> list[int]:
        return [0] * len(step.calls)

    async def start_call(self, pk: int) -> None:
        """There is nowhere to say so."""

    async def finish_call(self, outcome: CallOutcome) -> None:
        """As above."""

    async def suspend(self, suspension: CallSuspension) -> None:
        """As above."""
