"""The record as the rest of the agent uses it: one awaitable call for each thing to put down."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from agent.domain.claims import Claim
from agent.domain.errors import ClaimLost
from agent.record import arrivals, recovery, replies, runs, spendings
from agent.record.approvals import ApprovalDecision, ApprovalOutcome, apply_approval_decisions
from agent.record.commit import GroupCommit, I, R
from agent.record.deferred_calls import (
    CallCompletion,
    ProgressReport,
    complete_calls,
    record_progress,
)
from agent.record.outage import DatabaseOutage
from agent.record.quotas import AnswerQuotas
from tools.registry.settings import SettingsCache


def read_boot_clock() -> float:
    """Seconds that go on while this process is stopped, or its machine sleeps."""
    return (
        time.clock_gettime(time.CLOCK_BOOTTIME)
        if hasattr(time, "CLOCK_BOOTTIME")
        else time.monotonic()
    )


logger = logging.getLogger(__name__)


class Record:
    """Writes for one server process. Every method returns once its commit is done.

    While the database refuses, they wait. After cancellation of a method the commit may
    still happen: what was asked to be put down stays asked. What is put down of a run goes
    through :class:`agent.record.run_journal.RunJournal`, under the claim on that run.
    """

    def __init__(
        self,
        process_id: str,
        settings: SettingsCache,
        reload: Callable[[], None],
        quotas: AnswerQuotas | None = None,
    ) -> None:
        self.process_id = process_id
        self._beginnings = runs.RunStarter(process_id, settings, reload)
        self._arrivals = arrivals.ArrivalStore(process_id, self._beginnings, quotas)
        self._replies = replies.ReplyStore(process_id)
        self._commit = GroupCommit(self._forget)
        self._lease_ends: float | None = None

    @property
    def outage(self) -> DatabaseOutage | None:
        """That the database cannot be written now; None as far as is known."""
        return self._commit.outage

    def submit(
        self, operation: Callable[[Sequence[I]], Sequence[R]], item: I, claim: Claim | None = None
    ) -> "asyncio.Future[R]":
        """Write rows of a layer above in the same thread, with whatever else waits; see
        :mod:`agent.record.commit`."""
        return self._commit.submit(operation, item, claim)

    async def room(self) -> None:
        """Wait while so much is to be written that more should not be read."""
        await self._commit.room()

    def accept(
        self, arrival: arrivals.MessageArrival
    ) -> "asyncio.Future[arrivals.AcceptedMessage]":
        """Not awaited by the one who reads a socket: futures are completed in the order of the
        calls."""
        return self._commit.submit(self._arrivals.accept, arrival)

    async def refuse(self, message_pk: int) -> None:
        await self._commit.submit(arrivals.refuse_messages, message_pk)

    async def refresh(self) -> None:
        """Obey what the operator has changed, also while no message comes."""
        await self._commit.submit(self._beginnings.refresh, None)

    async def begin(self, wish: runs.StartRun) -> runs.ActiveRun:
        """The run that works on a message from now on. Raises
        :class:`agent.domain.errors.ClaimLost`."""
        begun = await self._commit.submit(self._beginnings.begin, wish)
        if isinstance(begun, ClaimLost):
            raise begun
        return begun

    def add_reply(self, reply: replies.OutgoingMessage, claim: Claim) -> "asyncio.Future[int]":
        return self._commit.submit(self._replies.add, reply, claim)

    def spend(self, tokens: int) -> None:
        """Count tokens of a model call, in the commit of whatever is put down next. Returns at
        once.

        A call that ends after :meth:`close` is not counted, and fails for nothing of this.
        """
        if self._commit.is_closed:
            return
        self._commit.submit(spendings.add_spending, tokens).add_done_callback(_tell_failure)

    def complete(self, completion: CallCompletion) -> "asyncio.Future[bool]":
        return self._commit.submit(complete_calls, completion)

    def note_progress(self, report: ProgressReport) -> "asyncio.Future[None]":
        return self._commit.submit(record_progress, report)

    async def rule(self, decision: ApprovalDecision) -> tuple[ApprovalOutcome, str]:
        return await self._commit.submit(apply_approval_decisions, decision)

    async def correct(self, late: replies.LateSendResult) -> bool:
        return await self._commit.submit(replies.correct_send_results, late)

    def appear(self, *, alone: bool, is_first: bool = False) -> "asyncio.Future[bool]":
        """Renew the lease; True when it had run out, and what was in hand here is in hand no
        more."""
        asked_at = read_boot_clock()
        renewed = self._commit.submit(
            recovery.record_heartbeats, recovery.ProcessHeartbeat(self.process_id, alone, is_first)
        )
        renewed.add_done_callback(lambda done: self._renewed(asked_at, done))
        return renewed

    @property
    def is_lease_over(self) -> bool:
        """Whether, by this process's own clock, others may have taken it for dead since it was sure
        of its claims last.

        What was put on record as sent before that is to be asked for again before it is
        written: whoever took it over has told it as of unknown outcome.
        """
        return self._lease_ends is not None and read_boot_clock() > self._lease_ends

    def _renewed(self, asked_at: float, done: "asyncio.Future[bool]") -> None:
        if not done.cancelled() and done.exception() is None:
            self._lease_ends = asked_at + recovery.LEASE_SECONDS

    def claim(self, account: str) -> "asyncio.Future[list[recovery.PendingMessage]]":
        return self._commit.submit(
            recovery.claim_messages, recovery.ClaimMessages(account, self.process_id)
        )

    async def is_next(self, message_pk: int, session_pk: int) -> bool:
        return await self._commit.submit(recovery.is_next_in_session, (message_pk, session_pk))

    async def held(self) -> dict[int, int]:
        """The messages that this process has to answer, each with the number of the claim on it."""
        return await self._commit.submit(recovery.find_held_messages, self.process_id)

    async def release(self, held: recovery.HeldMessage) -> bool:
        """Give a message back, unfinished; False where somebody else has it already."""
        return await self._commit.submit(recovery.release_messages, held)

    async def take_again(self, held: recovery.HeldMessage) -> recovery.PendingMessage | None:
        """Have a message whose run came to no end under a new claim; None where somebody else has
        it already."""
        return await self._commit.submit(recovery.reclaim_messages, (held, self.process_id))

    def end_within(self, seconds: float) -> None:
        """The process ends: a database that still refuses then is not waited for."""
        self._commit.end_within(seconds)

    async def close(self) -> None:
        """Commit what is still asked for, and leave nothing in this process's name."""
        leaving = self._commit.submit(recovery.remove_processes, self.process_id)
        await asyncio.wait([leaving, asyncio.ensure_future(self._commit.close())])
        if not leaving.cancelled():
            leaving.exception()  # told by the one who gave up

    def _forget(self) -> None:
        self._arrivals.forget()
        self._beginnings.forget()


def _tell_failure(written: "asyncio.Future[None]") -> None:
    if not written.cancelled() and (error := written.exception()):
        logger.warning("The tokens of a model call were not counted: %s", error)
