"""Where a failure ends: the edge of a task that nobody waits for, or of one try among many."""

import contextlib
import logging
from collections.abc import Iterator


@contextlib.contextmanager
def survive(logger: logging.Logger, text: str, *arguments: object) -> Iterator[None]:
    """Log whatever goes wrong inside, with ``text`` and the traceback, and go on after the block.

    Cancellation passes through.
    """
    try:
        yield
    except Exception:
        logger.exception(text, *arguments)
