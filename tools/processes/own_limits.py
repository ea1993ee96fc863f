"""What a program of :mod:`tools.processes.child` allows itself. It loads nothing that costs time
to start."""

import contextlib
import os

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]

#: How much a process steps back for the server's event loop.
NICENESS = 10


def limit_this_process(*, cpu_seconds: int, memory_bytes: int) -> None:
    """Have the operating system hold this process to its limits, where it can; it writes no
    file."""
    if resource is None:
        return
    for kind, limit in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # a stricter one holds already
            resource.setrlimit(kind, (limit, limit))
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
