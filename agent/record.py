"""The record as the rest of the agent uses it: one awaitable call for each thing to put down."""

import asyncio
from collections.abc import Callable, Sequence

from agent.commit import GroupCommit, I, R
from agent.store import approvals, arrivals, gates, later, recovery, replies, runs, steps
from tools.configs import SettingsCache


class Record:
    """Writes for one server process. Every method returns once its commit is done.

    After cancellation of a method the commit may still happen: what was asked to be
    put down stays asked.
    """

    def __init__(self, process_id: str, settings: SettingsCache, reload: Callable[[], None]) -> None:
        self.process_id = process_id
        self._commit = GroupCommit()
        self._beginnings = runs.Beginnings(process_id, settings, reload)
        self._arrivals = arrivals.Arrivals(process_id, self._beginnings)
        self._replies = replies.Replies(process_id)

    def submit(self, operation: Callable[[Sequence[I]], Sequence[R]], item: I) -> "asyncio.Future[R]":
        """Write rows of a layer above in the same thread, with whatever else waits; see :mod:`agent.commit`."""
        return self._commit.submit(operation, item)

    async def room(self) -> None:
        """Wait while so much is to be written that more should not be read."""
        await self._commit.room()

    def accept(self, arrival: arrivals.Arrival) -> "asyncio.Future[arrivals.Accepted]":
        """Not awaited by the one who reads a socket: futures are completed in the order of the calls."""
        return self._commit.submit(self._arrivals.accept, arrival)

    async def refuse(self, message_pk: int) -> None:
        await self._commit.submit(arrivals.refuse, message_pk)

    async def refresh(self) -> None:
        """Obey what the operator has changed, also while no message comes."""
        await self._commit.submit(self._beginnings.refresh, None)

    async def begin(self, wish: runs.Beginning) -> runs.Begun:
        return await self._commit.submit(self._beginnings.begin, wish)

    async def record_step(self, step: steps.NewStep) -> list[int]:
        return await self._commit.submit(steps.record_steps, step)

    async def start_call(self, pk: int) -> None:
        await self._commit.submit(steps.start_calls, pk)

    async def finish_call(self, outcome: steps.CallOutcome) -> None:
        await self._commit.submit(steps.finish_calls, outcome)

    async def suspend(self, suspension: later.Suspension) -> None:
        await self._commit.submit(later.suspend, suspension)

    def complete(self, completion: later.Completion) -> "asyncio.Future[bool]":
        return self._commit.submit(later.complete, completion)

    def note_progress(self, report: later.Progress) -> "asyncio.Future[None]":
        return self._commit.submit(later.note_progress, report)

    async def ask(self, question: approvals.Question) -> approvals.Asked | None:
        return await self._commit.submit(approvals.ask, question)

    async def rule(self, decision: approvals.Decision) -> tuple[approvals.Ruling, str]:
        return await self._commit.submit(approvals.rule, decision)

    async def set_continuing(self, session_pk: int, is_continuing: bool) -> None:
        await self._commit.submit(gates.set_continuing, (session_pk, is_continuing))

    def add_reply(self, reply: replies.Outgoing) -> "asyncio.Future[int]":
        return self._commit.submit(self._replies.add, reply)

    async def mark_sent(self, pk: int, echo: str) -> None:
        await self._commit.submit(replies.mark_sent, (pk, echo))

    def settle(self, outcome: replies.Outcome) -> "asyncio.Future[None]":
        return self._commit.submit(replies.settle, outcome)

    async def correct(self, late: replies.LateAnswer) -> bool:
        return await self._commit.submit(replies.correct, late)

    async def finish(self, ending: replies.Ending) -> None:
        await self._commit.submit(replies.finish, ending)

    def appear(self, *, alone: bool) -> "asyncio.Future[None]":
        return self._commit.submit(recovery.appear, recovery.Sighting(self.process_id, alone))

    def claim(self, account: str) -> "asyncio.Future[list[recovery.Left]]":
        return self._commit.submit(recovery.claim, recovery.Claim(account, self.process_id))

    async def is_next(self, message_pk: int, session_pk: int) -> bool:
        return await self._commit.submit(recovery.is_next, (message_pk, session_pk))

    async def release(self, message_pk: int) -> None:
        await self._commit.submit(recovery.release, message_pk)

    async def close(self) -> None:
        """Commit what is still asked for, and leave nothing in this process's name."""
        await self._commit.submit(recovery.disappear, self.process_id)
        await self._commit.close()
