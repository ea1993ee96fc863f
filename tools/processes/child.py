"""A program that runs under its keeper, as this server holds it: waited for, and ended with all
that it started."""

import asyncio
import contextlib
import os
import signal
import time
from asyncio.subprocess import Process

from tools.processes.tree import find_descendants, kill_descendants, kill_process_group

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
