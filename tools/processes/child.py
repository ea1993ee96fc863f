"""A program that runs under its keeper, as this server holds it: waited for, and ended with all
that it started.

Also programs of our own that run once for one thing, in a process that holds nothing else: what is
read or drawn there comes from outside, and cannot harm the server.

The program limits itself first (:mod:`tools.processes.own_limits`).
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import IO, Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
#: How long a killed process is waited for, in seconds.
GONE_SECONDS = 2.0


async def start_program(*arguments: str, stdin: int | IO[Any] = PIPE) -> Process:
    """Start Python with ``arguments``: without this process's environment, which holds the keys,
    but for where packages are; in a group of its own, and not in a session, as for the image
    worker."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        cwd=ROOT,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=stdin,
        stdout=PIPE,
        stderr=DEVNULL,
        process_group=0,
    )


async def read_output(process: Process, seconds: float, data: bytes | None = None) -> bytes:
    """What ``process`` writes until it ends well, given ``data``; b"" when it does not. Raises
    TimeoutError after ``seconds``. It is gone afterwards, also after cancellation."""
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate(data)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GONE_SECONDS):
                await process.wait()
    return output if process.returncode == 0 else b""


ROUNDS = 50
"""How many times newly started processes are searched before the found ones are killed."""
_KERNEL_LISTS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()
"""Linux: reading its list takes a tenth of the time of a scan of every process of the machine."""


def find_descendants(process: int) -> list[int]:
    """The ids of all processes below ``process``, as far as they are seen at one look."""
    found = list[int]()
    if not _KERNEL_LISTS_CHILDREN:
        with contextlib.suppress(psutil.Error):
            found = [child.pid for child in psutil.Process(process).children(recursive=True)]
        return found
    waiting = [process]
    while waiting:
        below = _children(waiting.pop())
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


#: How long killing is tried before the keeper itself is killed; between two tries, since something
#: may just have been started.
KILL_SECONDS, AGAIN_SECONDS = 3.0, 0.1
#: Between two looks whether it has ended.
LOOK_SECONDS = 0.01


class Child:
    """``process`` is the keeper that was started (see
    :func:`tools.processes.process_reaper.keeper_command`). For the event loop's thread."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._program = 0

    @property
    def status(self) -> int | None:
        """The keeper's exit status, below 0 when the keeper itself was killed; None while it
        runs."""
        return self.process.returncode

    def find_program(self) -> int:
        """The id of the program itself, as far as it can be seen; else its keeper's. To be called
        while it runs."""
        self._program = self._program or next(iter(find_descendants(self.process.pid)), 0)
        return self._program or self.process.pid

    def signal(self, number: signal.Signals) -> None:
        """Signal the process reaper. Not through its process object, which might take the exit
        status away from the code that awaits it."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    async def ends_within(self, seconds: float) -> bool:
        """Not by ``Process.wait()``, which also waits for pipes that others hold."""
        until = time.monotonic() + seconds
        while self.status is None:
            if time.monotonic() > until:
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True

    async def kill(self) -> None:
        """End the program at once, with everything that it started, and then its keeper."""
        until = time.monotonic() + KILL_SECONDS
        while self.status is None and time.monotonic() < until:
            await asyncio.to_thread(
                kill_descendants, self.process.pid
            )  # first: the keeper would give them time
            self.signal(
                signal.SIGTERM
            )  # it may be about to start what is not there to be killed yet
            await self.ends_within(AGAIN_SECONDS)
        self.signal(signal.SIGKILL)

    async def end_orphans(self) -> None:
        """End what a keeper that was killed itself has left, if the program was found. To be called
        once the keeper is gone."""
        if self._program and self.status is not None and self.status < 0:
            await asyncio.to_thread(kill_process_group, self._program)
