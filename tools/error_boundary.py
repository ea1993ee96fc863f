"""Where errors are caught: at the edge of a task that nothing awaits, or of one attempt among
many; and how often the same line is logged.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Coroutine, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

#: One line of one kind in so many seconds.
QUIET_SECONDS = 60.0
#: The most kinds remembered; beyond it all held-back lines are logged, and the kinds are forgotten.
REMEMBERED = 1_000


_limits: "list[LogLimit]" = []


@dataclass(slots=True)
class _Said:
    """When a kind was said last, how often it was held back since, and the newest line of those."""

    at: float
    count: int = 0
    newest: logging.LogRecord | None = None


class LogLimit(logging.Filter):
    """Lets one line of each kind a minute through ``logger``.

    The first is logged immediately. Held-back lines are logged as the newest one with a count when
    the minute is over, also when no line follows; :func:`flush_log_limits` logs the rest. A kind is
    the text of a line without its values, except the first ``named`` of them, and the type of its
    error; lines with and without an error are of different kinds. :meth:`warn` names it otherwise.
    """

    def __init__(self, logger: logging.Logger, named: int = 0) -> None:
        super().__init__()
        self._logger, self._named = logger, named
        self._said: dict[Hashable, _Said] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        logger.addFilter(self)
        _limits.append(self)

    def warn(self, subject: Hashable, text: str, *arguments: object) -> None:
        """A warning of the kind ``subject``."""
        self._logger.warning(text, *arguments, extra={"subject": subject})

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = self._kind(record), time.monotonic()
        said, is_full = self._said.get(kind), len(self._said) >= REMEMBERED
        if is_full or (said is not None and now - said.at >= QUIET_SECONDS):
            self.tell(everything=is_full)
        with self._lock:
            said = self._said.get(kind)
            if said is None:
                self._said[kind] = _Said(now)
                return True
            said.count, said.newest = said.count + 1, record
            self._look_later()
            return False

    def tell(self, *, everything: bool = False) -> None:
        """Say what was held back and whose minute is over, and forget what was not; with
        ``everything`` all of it."""
        now = time.monotonic()
        with self._lock:
            due = {
                kind: said
                for kind, said in self._said.items()
                if everything or now - said.at >= QUIET_SECONDS
            }
            for kind, said in due.items():
                if said.count and not everything:
                    self._said[kind] = _Said(now)  # a new minute starts
                else:
                    del self._said[kind]
        for said in due.values():
            if said.newest is not None:
                self._logger.callHandlers(_counted(said.newest, said.count))

    def _kind(self, record: logging.LogRecord) -> Hashable:
        subject: Hashable = getattr(record, "subject", None)
        if subject is not None:
            return subject
        if record.levelno < logging.WARNING:
            return record.getMessage()
        values = record.args[: self._named] if isinstance(record.args, tuple) else ()
        return record.msg, str(values), record.exc_info and record.exc_info[0]

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(QUIET_SECONDS, self._look)
            self._timer.daemon = True
            self._timer.start()

    def _look(self) -> None:
        self.tell()
        with self._lock:
            self._timer = None
            if any(said.count for said in self._said.values()):
                self._look_later()


def flush_log_limits() -> None:
    """Say what all limits still hold back, and forget what was said: for a process that ends."""
    for limit in _limits:
        limit.tell(everything=True)


def _counted(record: logging.LogRecord, count: int) -> logging.LogRecord:
    if count > 1:
        record.msg, record.args = f"{record.getMessage()} ({count - 1} more like it before)", ()
    return record


T = TypeVar("T")


class capture_error:  # noqa: N801 - it is used as contextlib's managers are
    """Catch every error of the block, for the code after it to check. Cancellation passes
    through. A class, for it stands around every message."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self.error = error
        return True


async def contain(work: Awaitable[T]) -> T:
    """The result of foreign ``work``, which can end only itself.

    Raises RuntimeError when it tries to exit the process, or raises CancelledError although the
    awaiting task was not cancelled. Real cancellation passes through.
    """
    try:
        return await work
    except SystemExit as error:
        raise RuntimeError(f"SystemExit: {error}") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("CancelledError") from error


@contextlib.contextmanager
def log_errors(logger: logging.Logger, text: str, *arguments: object) -> Iterator[None]:
    """Log whatever goes wrong inside, with ``text`` and the traceback, and go on after the block.

    Cancellation passes through.
    """
    with capture_error() as attempt:
        yield
    if attempt.error is not None:
        logger.error(text, *arguments, exc_info=attempt.error)


class KeptTasks(dict[Hashable, "asyncio.Task[Any]"]):
    """Tasks that nothing awaits, by a key: each is kept until it is done, which asyncio does not
    see to. Used from one event loop."""

    def begin(
        self, work: Coroutine[Any, Any, object], name: str, key: Hashable = None
    ) -> "asyncio.Task[Any]":
        """A task for ``work``, under ``key`` or, without one, under itself. What was kept under
        ``key`` before runs on."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self[key or task] = task
        task.add_done_callback(partial(self._forget, key or task))
        return task

    async def close(self) -> None:
        """Cancel what still runs, and wait for its end."""
        tasks = list(self.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: Hashable, task: "asyncio.Task[Any]") -> None:
        if self.get(key) is task:
            del self[key]
