"""What a plugin's processes may take, and what they have taken (Linux: elsewhere nothing can be
seen)."""

import contextlib
import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext

MIB = 2**20
ROUNDS = 50
"""How often it is looked for processes that were started since, before those that were found are
killed."""
_KERNEL_LISTS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """``memory_bytes`` and ``processes`` count for all processes of a plugin together,
    ``cpu_seconds`` for one call."""

    memory_bytes: int
    cpu_seconds: int
    open_files: int
    processes: int

    @classmethod
    def from_settings(cls) -> "ProcessLimits":
        memory = settings.PLUGIN_MEMORY_MIB * MIB
        return cls(
            memory,
            settings.PLUGIN_CPU_SECONDS,
            settings.PLUGIN_OPEN_FILES,
            settings.PLUGIN_PROCESSES,
        )

    def payload(self) -> dict[str, int]:
        """As the runner is told, for what the kernel can hold it to."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """Of several processes: how many they are, their own memory, and their processor time so
    far."""

    processes: int = 0
    memory_bytes: int = 0
    cpu_seconds: float = 0.0

    def excess(self, limits: ProcessLimits) -> str:
        """Which of ``limits`` is passed, in words for the operator; "" when none is."""
        if self.processes > limits.processes:
            return gettext("It had %(number)d processes; %(most)d are allowed.") % {
                "number": self.processes,
                "most": limits.processes,
            }
        if self.memory_bytes > limits.memory_bytes:
            return gettext("It took %(number)d MiB of memory; %(most)d are allowed.") % {
                "number": self.memory_bytes // MIB,
                "most": limits.memory_bytes // MIB,
            }
        return ""


def measure_usage(process: int) -> ProcessUsage:
    """What the descendants of ``process`` have taken; of those that end meanwhile, nothing."""
    used = [found for found in map(_used, find_descendants(process)) if found is not None]
    return ProcessUsage(len(used), sum(memory for memory, _ in used), sum(cpu for _, cpu in used))


def find_descendants(process: int) -> list[int]:
    """The ids of all processes below ``process``, as far as they are seen at one look."""
    children = _children if _KERNEL_LISTS_CHILDREN else _parents().get
    found, waiting = list[int](), [process]
    while waiting:
        below = children(waiting.pop()) or []
        found += below
        waiting += below
    return found


def kill_descendants(process: int) -> None:
    """End every descendant of ``process`` at once. They are stopped first: who is stopped starts no
    others."""
    stopped = set[int]()
    for _ in range(ROUNDS):
        fresh = set(find_descendants(process)) - stopped
        if not fresh:
            break
        _send(fresh, signal.SIGSTOP)
        stopped |= fresh
    _send(stopped, signal.SIGKILL)


def kill_process_group(leader: int) -> None:
    """End what is left of ``leader``, of what it started, and of its group."""
    kill_descendants(leader)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _send(processes: set[int], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _children(process: int) -> list[int]:
    found = list[int]()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            found += map(int, Path(f"/proc/{process}/task/{thread}/children").read_text().split())
    return found


def _parents() -> dict[int, list[int]]:
    """Who has which children, from a look at every process of the machine."""
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            found.setdefault(int(parent), []).append(int(stat.parent.name))
    return found


def _used(process: int) -> tuple[int, float] | None:
    """Bytes of memory that are not shared, and seconds of processor time, those of its ended
    children included."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
        resident, shared = (
            int(pages) for pages in Path(f"/proc/{process}/statm").read_text().split()[1:3]
        )
    except (OSError, ValueError):
        return None
    if stat[0] == "Z":
        return None
    return (resident - shared) * _PAGE, sum(map(int, stat[11:15])) / _TICKS
