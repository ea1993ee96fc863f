"""Group commit: one thread writes for the whole process, and what waits is committed together.

SQLite and PostgreSQL both pay per commit. Requests that arrive while a commit is
under way go into the next one, so a quiet server commits each message at once and
a busy one commits dozens for the price of one.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, TypeVarTuple

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.utils import timezone

from agent.domain.errors import ClaimLost
from agent.domain.states import Claim
from agent.record.ground import statements
from agent.record.ground.commit_marks import CommitMarker
from agent.record.ground.outage import DatabaseOutage, is_database_refusal, plain_reason
from agent.record.ground.record_socket import RecordSocket
from tools.error_boundary import LogLimit

logger = logging.getLogger(__name__)
LogLimit(logger)

I = TypeVar("I")  # noqa: E741 - an operation's item
R = TypeVar("R")
Ts = TypeVarTuple("Ts")
ForgetCallback = Callable[[], None]

#: Requests in one transaction, at most: bounds the time the write lock is held.
BATCH_SIZE = 256
#: Requests that may wait before :meth:`GroupCommit.wait_for_room` holds back those who can wait.
HIGH_WATER = 5_000
#: The same while the database refuses: what waits then is lost where the process has to end.
OUTAGE_WATER = 256
#: Pauses between tries while the database refuses, in seconds; the last one is repeated.
RETRY_PAUSES = (0.05, 0.2, 0.5, 1, 2)
#: Tries that fail before it is called an outage: a lock or a deadlock passes sooner.
UNNOTICED_TRIES = 2
#: How often a continuing outage is logged, in seconds.
REMIND_SECONDS = 60.0
#: How long a refusing database is still tried once the record is being closed, in seconds.
CLOSE_SECONDS = 5.0
#: A transaction that takes longer is cut off from a database that has stopped talking, in seconds:
#: longer than any statement of it may take (:mod:`agent.record.ground.idle_transactions`).
STUCK_SECONDS = 90.0
#: How often a transaction that takes long is looked at; and how long one that was cut off may take
#: to notice it at the end of the process, in seconds.
LOOK_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class _Request(Generic[R]):
    operation: Callable[..., Any]
    args: tuple[Any, ...]
    claim: Claim | None
    future: "asyncio.Future[R]"
    is_batched: bool = False
    is_in_order: bool = False
    is_decided: bool = False
    result: R | None = None
    error: Exception | None = None

    def decide(self, result: R | None = None, error: Exception | None = None) -> None:
        self.is_decided, self.result, self.error = True, result, error

    def settle(self) -> None:
        # the one who asked may have been cancelled; what was committed stays committed
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # decided, and so of the operation


@dataclass(slots=True)
class _Transaction:
    """The results of one transaction, if it is committed; ``mark`` is the mark to find it by, 0 for
    none."""

    mark: int = 0
    made: list[tuple[_Request[Any], Any]] = field(default_factory=list)
    lost: list[_Request[Any]] = field(default_factory=list)

    def perform(self, requests: Sequence[_Request[Any]]) -> None:
        """Each operation with all its items, but for those whose claim is lost."""
        claims = {request.claim for request in requests if request.claim is not None}
        if claims and (lost := find_lost_claims(claims)):
            self.lost += [request for request in requests if request.claim in lost]
            requests = [request for request in requests if request.claim not in lost]
        for group in [requests] if len(requests) == 1 else _grouped(requests):
            first = group[0]
            if first.is_batched:
                results = first.operation([request.args[0] for request in group])
            else:
                results = [first.operation(*first.args)]
            self.made += zip(group, results, strict=True)

    def decide(self) -> None:
        for request, result in self.made:
            request.is_decided, request.result = True, result
        for request in self.lost:
            request.decide(error=ClaimLost(request.claim))


def find_lost_claims(claims: Collection[Claim]) -> set[Claim]:
    """Those of ``claims`` that do not hold any more, because another process has them. The rows of
    the runs stay locked until the transaction ends."""
    rows = statements.lock_runs.rows(runs=[claim.run_pk for claim in claims])
    return set(claims) - {Claim(*row) for row in rows}


def _grouped(requests: Sequence[_Request[Any]]) -> list[list[_Request[Any]]]:
    """What is performed together: each request alone, and those of a batched operation at once;
    not where what one run puts down would change its order, or what is to be performed in order
    stands between."""
    groups: list[list[_Request[Any]]] = []
    newest: dict[Callable[..., Any], int] = {}
    reached: dict[Claim | None, int] = {}
    for request in requests:
        if request.is_in_order:
            newest.clear()
        number = newest.get(request.operation, -1)
        if number < reached.get(request.claim, 0):
            number = len(groups)
            groups.append([])
            if request.is_batched:
                newest[request.operation] = number
        groups[number].append(request)
        if request.claim is not None:
            reached[request.claim] = number
    return groups


class GroupCommit:
    """Runs operations in one database thread, many to a transaction.

    What is asked is a function and its arguments. A *batched* operation is a function from a list
    of items to a list of results of the same length: it is called once with all that wait. Its
    items keep their order, and so does what is asked under one claim. When a transaction
    fails, its requests are retried one by one, so that a bad one fails alone; while the database
    refuses all writes, all requests wait. A transaction whose COMMIT was not acknowledged is
    repeated only once it is known that it had no effect.

    ``forget`` is called, in the database thread, after every transaction that was not committed:
    rows cached there may never have existed. Cache rows only with ``transaction.on_commit``.
    """

    def __init__(self, forget: ForgetCallback = lambda: None) -> None:
        self._socket = RecordSocket()
        self._thread = ThreadPoolExecutor(
            1, thread_name_prefix="record", initializer=self._socket.dial_directly
        )
        self._forget = forget
        self._marks = CommitMarker()
        self._waiting: list[_Request[Any]] = []
        self._in_hand = 0
        self._writer: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._unacknowledged: _Transaction | None = None
        self._ends_at = math.inf
        """When what a refusing database has not taken is given up, by the clock of loops."""
        self._lost: Exception | None = None
        """Why it was given up: nothing is tried any more."""
        self.is_closed = False
        self._reminded_at = 0.0
        self._outage: DatabaseOutage | None = None
        self.on_written: Callable[[], None] | None = None
        """Called on the loop after requests were decided; it returns at once and never fails."""

    @property
    def outage(self) -> DatabaseOutage | None:
        """That the database refuses to be written, as of the last try; None where it took what it
        was given."""
        return self._outage

    def submit(
        self,
        function: Callable[[*Ts], R],
        *args: *Ts,
        claim: Claim | None = None,
        is_in_order: bool = False,
    ) -> "asyncio.Future[R]":
        """Queue ``function(*args)``; the future holds its result once the transaction is committed.

        Where it ``is_in_order``, all that was queued before it is performed before it, and all that
        is queued later after it.

        Cancelling the future does not take the request back. It fails with the error of the
        function, or with :class:`ClaimLost` where ``claim`` does not hold any more: then nothing
        was written. While the database refuses, it waits. Raises RuntimeError after :meth:`close`.
        """
        return self._queue(function, args, claim, is_in_order=is_in_order)

    def submit_batched(
        self,
        operation: Callable[[Sequence[I]], Sequence[R]],
        item: I,
        claim: Claim | None = None,
    ) -> "asyncio.Future[R]":
        """As :meth:`submit`, for one item of an ``operation`` that takes all which wait at once."""
        return self._queue(operation, (item,), claim, is_batched=True)

    def _queue(
        self,
        operation: Callable[..., Any],
        args: tuple[Any, ...],
        claim: Claim | None,
        *,
        is_batched: bool = False,
        is_in_order: bool = False,
    ) -> "asyncio.Future[Any]":
        if self.is_closed:
            raise RuntimeError("the record is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(_Request(operation, args, claim, future, is_batched, is_in_order))
        if self._writer is None:
            self._writer = loop.create_task(self._write(), name="group-commit")
        return future

    async def wait_for_room(self) -> None:
        """Return once fewer than ``HIGH_WATER`` requests wait, or ``OUTAGE_WATER`` while the
        database refuses."""
        while len(self._waiting) + self._in_hand >= (OUTAGE_WATER if self._outage else HIGH_WATER):
            self._drained.clear()
            await self._drained.wait()

    def fail_pending_after(self, seconds: float) -> None:
        """What a refusing database has not taken by then fails, and is lost: the process ends."""
        self._ends_at = min(self._ends_at, time.monotonic() + seconds)
        self._socket.dial_until(self._ends_at)

    async def close(self) -> None:
        """Commit what waits, then end the thread."""
        self.fail_pending_after(CLOSE_SECONDS)
        while self._writer is not None:
            await asyncio.wait([self._writer])
        self.is_closed = True
        loop = asyncio.get_running_loop()
        leaving = loop.run_in_executor(self._thread, self._disconnect)
        await asyncio.wait([leaving], timeout=LOOK_SECONDS)
        self._socket.cut()
        self._thread.shutdown(wait=False)

    # --- On the loop ----------------------------------------------------------------

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        tries = 0
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH_SIZE], self._waiting[BATCH_SIZE:]
                self._in_hand = len(batch)
                refusal = self._lost or await self._end_of(
                    loop.run_in_executor(self._thread, self._commit, batch)
                )
                for request in batch:
                    if request.is_decided:
                        request.settle()
                if self.on_written is not None:
                    self.on_written()
                self._waiting[:0] = [request for request in batch if not request.is_decided]
                self._in_hand = 0
                self._drained.set()
                tries = await self._bear(refusal, tries) if refusal else 0
                if self._outage is not None and not refusal:
                    self._recover(self._outage)
        finally:
            self._writer = None

    async def _end_of(self, committing: "asyncio.Future[Exception | None]") -> Exception | None:
        """What :meth:`_commit` returns. A database that says nothing for too long is cut off, and
        no longer waited for once the process has to end."""
        began = time.monotonic()
        while not (await asyncio.wait([committing], timeout=LOOK_SECONDS))[0]:
            now = time.monotonic()
            if now > min(began + STUCK_SECONDS, self._ends_at):
                self._socket.cut()
            if now > self._ends_at + LOOK_SECONDS:
                return OperationalError("it does not answer")
        return committing.result()

    async def _bear(self, refusal: Exception, tries: int) -> int:
        """Wait before the next try, and report the outage if it lasts. Returns the number of tries
        in a row; 0 after giving up."""
        now = time.monotonic()
        if now >= self._ends_at:
            self._give_up(refusal)
            return 0
        if tries >= UNNOTICED_TRIES:
            self._notice(refusal, now)
        pause = RETRY_PAUSES[min(tries, len(RETRY_PAUSES) - 1)]
        await asyncio.sleep(min(pause, self._ends_at - now))
        return tries + 1

    def _notice(self, refusal: Exception, now: float) -> None:
        since = self._outage.since if self._outage else timezone.now()
        if self._outage is None or now - self._reminded_at >= REMIND_SECONDS:
            self._reminded_at = now
            logger.error(
                "The database cannot be written: %s. %d writes wait for it",
                refusal,
                len(self._waiting),
            )
        self._outage = DatabaseOutage(since, plain_reason(refusal), len(self._waiting))

    def _recover(self, outage: DatabaseOutage) -> None:
        seconds = (timezone.now() - outage.since).total_seconds()
        logger.warning("The database can be written again, after %.0f s", seconds)
        self._outage = None

    def _give_up(self, refusal: Exception) -> None:
        """The process ends: what could not be written is lost with it."""
        logger.critical(
            "%d writes are lost: the database cannot be written: %s", len(self._waiting), refusal
        )
        self._lost = refusal
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.decide(error=refusal)
            request.settle()

    # --- In the database thread -------------------------------------------------------

    def _commit(self, batch: Sequence[_Request[Any]]) -> Exception | None:
        """Decide requests; the error, where the database refuses: those that are not decided are to
        be tried again."""
        try:
            self._transact(batch)
        except Exception as error:  # noqa: BLE001 - the boundary: every error belongs to a request
            if is_database_refusal(error):
                return error
            logger.warning(
                "A transaction of %d requests failed (%s); trying them one by one",
                len(batch),
                error,
            )
            return self._commit_each(batch)
        return None

    def _commit_each(self, batch: Sequence[_Request[Any]]) -> Exception | None:
        for request in batch:
            try:
                self._transact([request])
            except Exception as error:
                if is_database_refusal(error):
                    return error
                logger.exception("A write was refused")
                request.decide(error=error)
        return None

    def _transact(self, batch: Sequence[_Request[Any]]) -> None:
        """Perform what is undecided of ``batch`` in one transaction."""
        this, is_marked = _Transaction(), connection.vendor == "postgresql"
        if self._unacknowledged is not None:
            self._resolve()
        try:
            if is_marked:
                self._marks.prepare()
            with transaction.atomic():
                statements.here.database = connections[DEFAULT_DB_ALIAS]
                this.perform([request for request in batch if not request.is_decided])
                if is_marked:
                    this.mark = self._marks.write_mark()
        except Exception as error:
            self._forget()
            if is_database_refusal(error):
                connection.close()
            if not this.mark:
                raise
            self._unacknowledged = this
            self._resolve()
            if not all(request.is_decided for request in batch):
                raise
        else:
            this.decide()
        finally:
            statements.here.database = None

    def _resolve(self) -> None:
        """Find out whether a COMMIT without an answer took effect. Raises a database error if that
        is unknown."""
        if (last := self._unacknowledged) is not None:
            try:
                if self._marks.took_effect(last.mark):
                    last.decide()
            except (DatabaseError, InterfaceError):
                # it may be lost again, and Django never asks whether one still works
                connection.close()
                raise
            self._unacknowledged = None

    def _disconnect(self) -> None:
        if self._lost is None:
            with contextlib.suppress(DatabaseError, InterfaceError):
                self._marks.remove()
        connection.close()  # each thread has a connection of its own
