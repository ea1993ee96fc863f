"""What a plugin's processes take, as the server sees it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.plugins.process import MIB, ProcessLimits, ProcessUsage, measure_usage
from tools.processes import child
from tools.processes.child import find_descendants, kill_descendants

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="descendants are found through /proc"
    ),
]

LIMITS = ProcessLimits(memory_bytes=100 * MIB, cpu_seconds=5, open_files=64, processes=3)
FAMILY = """
import os, sys, time
for _ in range(3):
    os.fork()
kept = b"x" * 10 * 2**20
os.write(1, b"ready\\n")
time.sleep(600)
"""


@pytest.mark.parametrize("kernel_lists", [True, False])
def test_a_family_is_found_counted_and_killed(monkeypatch, kernel_lists):
    monkeypatch.setattr(
        child, "_KERNEL_LISTS_CHILDREN", kernel_lists and child._KERNEL_LISTS_CHILDREN
    )
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    with subprocess.Popen(
        [sys.executable, "-c", parent, FAMILY], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        said = [process.stdout.readline() for _ in range(8)]
        usage = measure_usage(process.pid)
        kill_descendants(process.pid)
        process.wait(30)
    assert (said, usage.processes) == (["ready\n"] * 8, 8)
    assert usage.memory_bytes > 60 * MIB  # the kernel counts pages roughly
    assert find_descendants(process.pid) == []


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (ProcessUsage(3, 100 * MIB, 1000), ""),
        (ProcessUsage(4, 0, 0), "It had 4 processes; 3 are allowed."),
        (ProcessUsage(1, 101 * MIB, 0), "It took 101 MiB of memory; 100 are allowed."),
    ],
)
def test_what_is_too_much_is_told_with_its_limit(usage, words):
    assert usage.excess(LIMITS) == words
