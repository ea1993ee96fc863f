"""The machine: what it is, how its cores are shared out, and what a process has used (Linux
only)."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


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


def cores() -> tuple[set[int], set[int]]:
    """The server's core and the rig's; both all there are where there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return ({usable[0]}, {usable[1]}) if len(usable) > 1 else (set(usable), set(usable))


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
    for member in _tree(pid):
        try:
            totals = [total + value for total, value in zip(totals, _one(member), strict=True)]
        except OSError:
            continue
    cpu, rss, anonymous, threads, files = totals
    return Usage(cpu, round(rss, 1), round(anonymous, 1), int(threads), int(files))


def _one(pid: int) -> tuple[float, ...]:
    stat = _stat(pid)
    resident, mapped = (int(pages) for pages in Path(f"/proc/{pid}/statm").read_text().split()[1:3])
    files = len(os.listdir(f"/proc/{pid}/fd"))
    cpu = (int(stat[11]) + int(stat[12])) / _TICKS
    return cpu, resident * _PAGE / 2**20, (resident - mapped) * _PAGE / 2**20, int(stat[17]), files


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, so that field N of proc(5) is at N - 3."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            children.setdefault(int(_stat(int(name))[1]), []).append(int(name))
        except OSError:
            continue
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found
