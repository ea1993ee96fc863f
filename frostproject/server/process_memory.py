"""This process's memory and environment, which hold keys. A file of its own that imports nothing of
the project: a test copies it and runs it alone, as another user."""

import contextlib
import ctypes

_PR_SET_DUMPABLE = 4


def hide_process_memory() -> None:
    """On Linux, keep what runs as the same user, such as plugins, from looking into this process.

    Core dumps, debuggers and profilers then need root. A program that is started from here is as
    open as any.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
