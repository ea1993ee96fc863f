"""What a plugin's processes may take, and what they have taken."""

import contextlib
from dataclasses import asdict, dataclass

import psutil
from django.conf import settings
from django.utils.translation import gettext

from tools.processes.tree import find_descendants

MIB = 2**20


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
        """As arguments of the runner: the limits that the kernel can enforce."""
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
    """The resources of the descendants of ``process``, without those that end meanwhile.

    Memory is the part that is not shared, as far as the system reports it; on Linux, processor time
    includes that of ended children.
    """
    number, memory, seconds = 0, 0, 0.0
    for found in find_descendants(process):
        with contextlib.suppress(psutil.Error):
            one = psutil.Process(found)
            with one.oneshot():
                if one.status() == psutil.STATUS_ZOMBIE:
                    continue
                taken, times = one.memory_info(), one.cpu_times()
            number += 1
            memory += taken.rss - getattr(taken, "shared", 0)
            seconds += sum(times[:4])
    return ProcessUsage(number, memory, seconds)
