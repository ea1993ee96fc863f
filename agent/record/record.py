"""The record as the rest of the agent uses it: one way to write rows, and a process's lease."""

import asyncio
import logging
import time

from agent.domain.errors import ClaimLost
from agent.llm.spending import Spend
from agent.record.arrivals import arrivals
from agent.record.chats import early_recalls
from agent.record.ground.commit import GroupCommit
from agent.record.runs import runs
from agent.record.runs.steps import tool_offers
from agent.record.settings.live import LiveSettings
from agent.record.sums.quotas import AnswerQuotas
from agent.record.sums.spendings import Posting, SpendBook, SpentAnswer
from agent.record.waiting import recovery
from tools.local_time import current_day, first_of_day

logger = logging.getLogger(__name__)


def read_boot_clock() -> float:
    """Seconds that also count while this process is stopped, or its machine sleeps."""
    return (
        time.clock_gettime(time.CLOCK_BOOTTIME)
        if hasattr(time, "CLOCK_BOOTTIME")
        else time.monotonic()
    )


class Record(GroupCommit):
    """The record of one server process. Every write goes through :meth:`submit`.

    ``await record.submit(function, *args)`` runs a function of a store with its arguments, and
    returns its result once the commit is done. An operation that has to know this process belongs
    to :attr:`arrivals` or :attr:`run_starter`. What a run writes goes through
    :class:`agent.record.run_journal.RunJournal`, under the claim on that run. The other methods
    do more than write: they keep the lease, turn a lost claim into an error, or end the writing.

    While the database refuses, all of them wait. After cancellation the commit may still happen.
    """

    def __init__(
        self,
        process_id: str,
        live: LiveSettings | None = None,
        quotas: AnswerQuotas | None = None,
    ) -> None:
        super().__init__(self._forget_rows)
        tool_offers.forget()  # of another record, which may have been that of another database
        early_recalls.forget()
        self.process_id = process_id
        self.run_starter = runs.RunStarter(process_id, live)
        self.live = self.run_starter.live
        self.arrivals = arrivals.ArrivalStore(process_id, self.run_starter, quotas)
        self.spend_book = SpendBook()
        self._quotas = quotas
        self._lease_ends: float | None = None

    async def begin_run(self, start_run: runs.StartRun) -> runs.ActiveRun:
        """The run that works on a message from now on. Raises
        :class:`agent.domain.errors.ClaimLost`."""
        begun = await self.submit_batched(self.run_starter.begin_runs, start_run)
        if isinstance(begun, ClaimLost):
            raise begun
        return begun

    def spend(self, spend: Spend) -> None:
        """Count what a model call cost, in the commit of whatever is written next. Returns at
        once.

        A call that ends after :meth:`close` is not counted, and does not fail because of this.
        """
        if not self.is_closed:
            self.post(Posting(current_day(), spend))

    def post(self, posting: Posting) -> "asyncio.Future[SpentAnswer | None]":
        """Count ``posting`` as :meth:`spend` does; the future is done once it is committed."""
        written = self.submit_batched(self.spend_book.post, posting)
        written.add_done_callback(_log_failure)
        return written

    async def has_tokens_left(self) -> bool:
        """Whether background work may still call a model."""
        return self._quotas is None or await self.submit(
            self._quotas.has_tokens, first_of_day(current_day())
        )

    def renew_lease(self, *, alone: bool, is_first: bool = False) -> "asyncio.Future[bool]":
        """Renew the lease; True when it had run out: others then have what this process had.

        ``alone`` says that no other process can be serving from this database, ``is_first`` that
        this one has just started.
        """
        asked_at = read_boot_clock()
        renewed = self.submit(recovery.record_heartbeat, self.process_id, alone, is_first)
        renewed.add_done_callback(lambda done: self._on_renewed(asked_at, done))
        return renewed

    @property
    def is_lease_over(self) -> bool:
        """Whether, by this process's own clock, others may have taken it for dead since it was sure
        of its claims last.

        A message recorded as sent before that must be recorded again before it is written to a
        socket: the process that took it over has marked its outcome as unknown.
        """
        return self._lease_ends is not None and read_boot_clock() > self._lease_ends

    async def close(self) -> None:
        """Commit what is still asked for, and leave nothing in this process's name."""
        leaving = self.submit(recovery.remove_processes, self.process_id)
        await asyncio.wait([leaving, asyncio.ensure_future(super().close())])
        if not leaving.cancelled():
            leaving.exception()  # logged when it was given up

    def _on_renewed(self, asked_at: float, done: "asyncio.Future[bool]") -> None:
        if not done.cancelled() and done.exception() is None:
            self._lease_ends = asked_at + recovery.LEASE_SECONDS

    def _forget_rows(self) -> None:
        self.arrivals.forget()
        self.live.forget()
        tool_offers.forget()


def _log_failure(written: "asyncio.Future[SpentAnswer | None]") -> None:
    if not written.cancelled() and (error := written.exception()):
        logger.warning("The cost of a model call was not counted: %s", error)
