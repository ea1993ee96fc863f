"""What the kernel lets a plugin's process take. Where it has no such limits, only the server looks
after it."""

import contextlib
import math
from collections.abc import Mapping
from typing import Any

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]


def apply_rlimits(limits: Mapping[str, Any]) -> None:
    """Set ``memory_bytes`` and ``open_files``, each if it is given, for this process and its
    children, and disable core dumps.

    The server counts processes itself: the kernel counts all processes of a user.
    """
    if resource is None:
        return
    _set(resource.RLIMIT_CORE, 0)
    # Not RLIMIT_AS: libraries reserve far more addresses than they use memory.
    _set(resource.RLIMIT_DATA, _whole(limits.get("memory_bytes")))
    _set(resource.RLIMIT_NOFILE, _whole(limits.get("open_files")))


class CpuTimeLimit:
    """How many seconds of processor time the process may use until :meth:`renew` is called again;
    0: any number.

    A process that uses more is ended by SIGXCPU.
    """

    def __init__(self, limits: Mapping[str, Any]) -> None:
        self._seconds = _whole(limits.get("cpu_seconds")) or 0
        self.renew()

    def renew(self) -> None:
        if resource is None or not self._seconds:
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = math.ceil(used.ru_utime + used.ru_stime) + self._seconds
        if hard == resource.RLIM_INFINITY or soft <= hard:
            resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _set(kind: int, limit: int | None) -> None:
    """As far down as ``limit``; a lower limit that was there before stays."""
    if limit is None:
        return
    _, hard = resource.getrlimit(kind)
    most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, most))


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
