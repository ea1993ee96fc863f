"""The keeper between the server and what it starts: nothing that was started outlives either of
them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.environment import PATIENCE
from tools.processes.process_reaper import keeper_command

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="descendants are found through /proc"
    ),
]

FORKS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
{then}
"""


def keep(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        keeper_command(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(process: int) -> bool:
    until = time.monotonic() + PATIENCE
    while is_alive(process) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_alive(process)


def test_the_program_has_the_streams_and_its_status_is_the_keepers():
    keeper = keep("sh", "-c", "read word; echo got $word; exit 7")
    assert keeper.communicate("this\n")[0] == "got this\n"
    assert keeper.returncode == 7


def test_a_program_that_cannot_be_started_is_told_on_stderr():
    ended = subprocess.run(keeper_command("no-such-program"), capture_output=True, text=True)
    assert ended.returncode == 127
    assert ended.stderr == "no-such-program: No such file or directory\n"


def test_a_program_that_was_killed_gives_the_signal_in_its_status():
    assert (
        subprocess.run(keeper_command("sh", "-c", "kill -9 $$")).returncode == 128 + signal.SIGKILL
    )


@pytest.mark.parametrize("then", ["sys.exit(0)", "time.sleep(600)"])
def test_children_that_have_left_their_session_end_with_the_keeper(then):
    with keep(sys.executable, "-c", FORKS.format(then=then)) as keeper:
        assert keeper.stdout
        orphan = int(keeper.stdout.readline())
        keeper.terminate()
        keeper.wait(10)
    assert ends(orphan)


def test_a_program_ends_with_a_keeper_that_was_killed():
    with keep("sh", "-c", "echo $$; exec sleep 600") as keeper:
        assert keeper.stdout
        program = int(keeper.stdout.readline())
        keeper.kill()
    assert ends(program)


def test_everything_ends_when_the_server_is_killed():
    starts = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)"
    command = [
        sys.executable,
        "-c",
        starts,
        *keeper_command(sys.executable, "-c", FORKS.format(then="time.sleep(600)")),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        orphan = int(server.stdout.readline())
        os.kill(server.pid, signal.SIGKILL)
    assert ends(orphan)
