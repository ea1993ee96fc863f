"""Where errors are caught: at the edge of a task that nothing awaits, or of one attempt among
many."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class CapturedError:
    """What went wrong inside a :func:`capture_error` block, if anything did."""

    error: Exception | None = None


@contextlib.contextmanager
def capture_error() -> Iterator[CapturedError]:
    """Catch every error of the block, for the code after it to check. Cancellation passes
    through."""
    attempt = CapturedError()
    try:
        yield attempt
    except Exception as error:  # noqa: BLE001 - the boundary
        attempt.error = error


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
