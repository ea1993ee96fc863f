"""One test's left-over never fails the next."""

import subprocess
import sys
from pathlib import Path

from tests.environment import PROJECT

FIRST_FAILS = """
import gc, socket, subprocess, sys

def test_leaves_things_behind():
    left = [socket.socket(), subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1)]
    left.append(left)
    assert not left

def test_is_well():
    gc.collect()

def test_is_well_too():
    gc.collect()
"""


def test_what_a_failed_test_leaves_open_does_not_fail_the_next(tmp_path: Path):
    file = tmp_path / "test_two.py"
    file.write_text(FIRST_FAILS)
    options = [
        "-p",
        "tests.left_overs",
        "-p",
        "no:django",
        "-p",
        "no:asyncio",
        "-W",
        "error",
        f"--rootdir={tmp_path}",
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "/dev/null", *options, str(file)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 failed, 2 passed" in ended.stdout, ended.stdout
    assert "error" not in ended.stdout.splitlines()[-1]
