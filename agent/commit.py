"""Group commit: one thread writes for the whole process, and what waits is committed together.

SQLite and PostgreSQL both pay per commit. Requests that arrive while a commit is
under way go into the next one, so a quiet server commits each message at once and
a busy one commits dozens for the price of one.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import InterfaceError, OperationalError, connection, transaction

logger = logging.getLogger(__name__)

I = TypeVar("I")  # noqa: E741 - an operation's item
R = TypeVar("R")

#: Requests in one transaction, at most: bounds the time the write lock is held.
BATCH_SIZE = 256
#: Requests that may wait before :meth:`GroupCommit.room` holds back those who can wait.
HIGH_WATER = 5_000
#: Pauses between tries while the database cannot be reached or is locked, in seconds.
RETRY_PAUSES = (0.05, 0.2, 0.5, 1, 2, 4, 8)


@dataclass(slots=True, eq=False)
class _Request(Generic[I, R]):
    operation: Callable[[Sequence[I]], Sequence[R]]
    item: I
    future: "asyncio.Future[R]"

    def settle(self, outcome: R | Exception) -> None:
        if self.future.done():  # the one who asked was cancelled; what was committed stays committed
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class GroupCommit:
    """Runs operations in one database thread, many to a transaction.

    An operation is a function from a list of items to a list of results of the same
    length. Items of one operation keep their order. When a transaction fails, its
    requests are tried again one by one, so that a bad one fails alone.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="record")
        self._waiting: list[_Request[Any, Any]] = []
        self._writer: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._is_closed = False

    def submit(self, operation: Callable[[Sequence[I]], Sequence[R]], item: I) -> "asyncio.Future[R]":
        """Queue ``item``; the future holds its result once the transaction is committed.

        Cancelling the future does not take the request back. It fails with the error
        of the operation, or with a database error that did not pass within about 15 s.
        Raises RuntimeError after :meth:`close`.
        """
        if self._is_closed:
            raise RuntimeError("the record is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append(_Request(operation, item, future))
        if self._writer is None:
            self._writer = loop.create_task(self._write(), name="group-commit")
        return future

    async def room(self) -> None:
        """Return once fewer than ``HIGH_WATER`` requests wait."""
        while len(self._waiting) >= HIGH_WATER:
            self._drained.clear()
            await self._drained.wait()

    async def close(self) -> None:
        """Commit what waits, then end the thread."""
        while self._writer is not None:
            await asyncio.wait([self._writer])
        self._is_closed = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, _disconnect)
        self._thread.shutdown(wait=False)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH_SIZE], self._waiting[BATCH_SIZE:]
                self._drained.set()
                outcomes = await loop.run_in_executor(self._thread, _commit, batch)
                for request, outcome in zip(batch, outcomes, strict=True):
                    request.settle(outcome)
        finally:
            self._writer = None


def _disconnect() -> None:
    connection.close()  # looked up here: each thread has its own


def _commit(batch: Sequence[_Request[Any, Any]]) -> list[Any]:
    try:
        return _transact(batch)
    except Exception as error:  # noqa: BLE001 - the boundary: every error belongs to a request
        if len(batch) > 1:
            logger.warning("A transaction of %d requests failed (%s); trying them one by one", len(batch), error)
        return [_commit_alone(request) for request in batch]


def _commit_alone(request: _Request[Any, Any]) -> Any:
    for pause in (*RETRY_PAUSES, None):
        try:
            return _transact([request])[0]
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if pause is None:
                logger.exception("The database could not be written")
                return error
            time.sleep(pause)
        except Exception as error:
            logger.exception("A write was refused")
            return error
    raise AssertionError("unreachable")


def _transact(batch: Sequence[_Request[Any, Any]]) -> list[Any]:
    """Perform ``batch`` in one transaction, each operation once with all its items."""
    places: dict[Callable[..., Any], list[int]] = {}
    for place, request in enumerate(batch):
        places.setdefault(request.operation, []).append(place)
    outcomes: list[Any] = [None] * len(batch)
    with transaction.atomic():
        for operation, where in places.items():
            for place, result in zip(where, operation([batch[p].item for p in where]), strict=True):
                outcomes[place] = result
    return outcomes
