"""The machine: what it is, how its cores are shared out, and what a process has used (Linux
only)."""

import contextlib
import functools
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil


def describe() -> dict[str, Any]:
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "load_average": [round(x, 2) for x in os.getloadavg()],
    }


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


@functools.cache
def usable() -> tuple[int, ...]:
    """The cores there are for server and rig. Asked once: afterwards the rig keeps to its own."""
    return tuple(sorted(os.sched_getaffinity(0)))


def cores() -> tuple[set[int], set[int]]:
    """The server's core and the rig's; both all there are where there is only one."""
    server, *others = usable()
    return {server}, {others[0] if others else server}


def ended_seconds(pid: int) -> float:
    """The CPU of a process's children that have ended, which :func:`usage` leaves out."""
    times = psutil.Process(pid).cpu_times()
    return float(times.children_user + times.children_system)


@dataclass(frozen=True, slots=True)
class Usage:
    """A process and its descendants: CPU is user plus system time in seconds, memory is in MiB."""

    cpu_seconds: float
    rss_mib: float
    anonymous_mib: float
    """The part of the RSS that is not files mapped into memory (SQLite maps its database)."""
    threads: int
    open_files: int


def usage(pid: int) -> Usage:
    """Processes that end meanwhile are left out."""
    totals = [0.0] * 5
    members = list[psutil.Process]()
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        members = [root, *root.children(recursive=True)]
    for member in members:
        with contextlib.suppress(psutil.Error), member.oneshot():
            memory, times = member.memory_info(), member.cpu_times()
            own = (
                times.user + times.system,
                memory.rss / 2**20,
                (memory.rss - memory.shared) / 2**20,
            )
            totals = [
                total + one
                for total, one in zip(
                    totals, (*own, member.num_threads(), member.num_fds()), strict=True
                )
            ]
    cpu, rss, anonymous, threads, files = totals
    return Usage(cpu, round(rss, 1), round(anonymous, 1), int(threads), int(files))
