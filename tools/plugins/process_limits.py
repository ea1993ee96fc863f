"""What a plugin's processes may take, and what they have taken (Linux: elsewhere nothing can be
seen)."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext

from tools.processes.tree import find_descendants

MIB = 2**20
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
