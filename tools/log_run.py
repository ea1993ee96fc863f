"""Which run log lines belong to."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: The key of the run that the present task works on; 0 outside of one.
log_run: ContextVar[int] = ContextVar("log_run", default=0)


@contextmanager
def logging_for(run_pk: int) -> Iterator[None]:
    """Have the lines that are logged inside, also by tasks begun there, name the run."""
    token = log_run.set(run_pk)
    try:
        yield
    finally:
        log_run.reset(token)


def name_runs_in_log() -> None:
    """Have every log record of this process hold its run, as ``record.run``, from where it was
    made: it may be written later, in another task."""
    make = logging.getLogRecordFactory()
    if getattr(make, "names_runs", False):
        return

    def make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        record.run = log_run.get()
        return record

    make_record.names_runs = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(make_record)
