"""Where a failure ends: the edge of a task that nobody waits for, or of one try among many."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True)
class Attempt:
    """What went wrong inside a :func:`caught` block, if anything did."""

    error: Exception | None = None


@contextlib.contextmanager
def caught() -> Iterator[Attempt]:
    """Keep whatever goes wrong inside, for the code after the block to look at. Cancellation passes through."""
    attempt = Attempt()
    try:
        yield attempt
    except Exception as error:  # noqa: BLE001 - the boundary
        attempt.error = error


@contextlib.contextmanager
def survive(logger: logging.Logger, text: str, *arguments: object) -> Iterator[None]:
    """Log whatever goes wrong inside, with ``text`` and the traceback, and go on after the block.

    Cancellation passes through.
    """
    with caught() as attempt:
        yield
    if attempt.error is not None:
        logger.error(text, *arguments, exc_info=attempt.error)
