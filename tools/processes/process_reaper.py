"""The program between the server and a program that it starts: ``python -I -S process_reaper.py
PROGRAM [ARGUMENT ...]``.

Grandchildren survive their parents: ``npx`` starts ``node``, a plugin forks, and a killed server
cannot end them. The reaper can. It starts PROGRAM with its own standard streams and other inherited
files, and adopts orphaned descendants (Linux). When PROGRAM ends, the server ends in any way, or
the reaper gets a signal to stop, it ends all of them. Its exit status is PROGRAM's; 128 + N for
signal N.

Imports only the standard library and nothing of this project, so that it is small and starts fast.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

GRACE_SECONDS = 2.0
"""The time between asking all processes to end and killing the remaining ones."""
LOOK_SECONDS = 1.0
"""The interval of checks whether the server still runs, where the kernel does not report it."""
NOT_FOUND = 127
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
PROCESSES = Path("/proc")


def keeper_command(*command: str) -> list[str]:
    """The command line that runs ``command`` under a keeper; files that it is to inherit must be
    passed to both."""
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve()), *command]


def main(command: list[str]) -> int:
    server = os.getppid()
    with contextlib.suppress(OSError):  # it leads a group already
        os.setsid()  # a Ctrl-C in the server's terminal is the server's to deal with
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    program = _start(command)
    status = _watch(program, server, wake) if program else NOT_FOUND
    _end_all(program)
    return status


def _start(command: list[str]) -> int:
    """The id of the started program, in a process group of its own; 0 when it cannot be started."""
    keeper = os.getpid()
    reads, writes = os.pipe()  # the program's end is closed when it begins
    if (program := os.fork()) == 0:
        _become(command, keeper, writes)
    os.close(writes)
    with os.fdopen(reads) as problems:
        problem = problems.read()
    if not problem:
        return program
    sys.stderr.write(f"{command[0]}: {problem}\n")
    return 0


def _become(command: list[str], keeper: int, problems: int) -> None:
    """Be the program, which the kernel ends with its keeper (Linux); never returns. Says in
    ``faults`` why it cannot begin."""
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:
            os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(problems, (error.strerror or "").encode())
    finally:
        os._exit(NOT_FOUND)


def _watch(program: int, server: int, wake: int) -> int:
    """Wait until the program has ended, the server is gone, or a signal to stop comes."""
    while True:
        if (status := _reaped(program)) is not None:
            return status
        if os.getppid() != server:
            return 128 + signal.SIGTERM
        if select.select([wake], [], [], LOOK_SECONDS)[0] and signal.SIGTERM in os.read(wake, 512):
            return 128 + signal.SIGTERM


def _reaped(program: int) -> int | None:
    """The exit status of ``program`` if it has ended; other processes that have ended are
    reaped."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == program:
                code = os.waitstatus_to_exitcode(ended[1])
                found = code if code >= 0 else 128 - code
    return found


def _end_all(program: int) -> None:
    """Ask every descendant to end, and kill those that do not."""
    if (
        not PROCESSES.is_dir()
    ):  # descendants cannot be listed; those that did not leave the program's group are in it
        with contextlib.suppress(OSError):
            os.killpg(program, signal.SIGKILL)
        return
    until = time.monotonic() + GRACE_SECONDS
    _send(signal.SIGTERM)
    while _descendants() and time.monotonic() < until:
        _reaped(0)
        time.sleep(0.02)
    while _descendants():  # those started meanwhile are found the next time
        _send(signal.SIGKILL)
        _reaped(0)
        time.sleep(0.01)


def _send(number: int) -> None:
    for process in _descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _descendants() -> list[int]:
    """The ids of all living processes below this one."""
    children: dict[int, list[int]] = {}
    for entry in PROCESSES.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = entry.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry.parent.name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the keeper looks for its parent now and then."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
