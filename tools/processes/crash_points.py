"""Named boundaries at which a test can have the process die as if it were killed.

Without ``FROST_FAULT`` a boundary costs one comparison. With ``FROST_FAULT=name`` the
process kills itself with SIGKILL the first time it gets there: no cleanup runs.
"""

import asyncio
import os
import signal
from typing import Literal

from django.conf import settings

CrashPoint = Literal[
    "message_committed",
    "model_called",
    "tool_run",
    "frame_written",
    "answer_received",
    "alert_claimed",
    "reminder_fired",
    "undo_claimed",
    "event_taken",
    "request_claimed",
]
#: Time for the event loop to hand written bytes to the kernel, in seconds.
FLUSH_SECONDS = 0.1


def hit_crash_point(boundary: CrashPoint) -> None:
    if boundary == settings.FROST_FAULT:
        os.kill(os.getpid(), signal.SIGKILL)


def hit_crash_point_after_flush(boundary: CrashPoint) -> None:
    """The same, after what was just written to a socket has left the process."""
    if boundary == settings.FROST_FAULT:
        asyncio.get_running_loop().call_later(FLUSH_SECONDS, hit_crash_point, boundary)
