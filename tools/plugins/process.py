"""The process of one plugin, under its keeper: started, heard, and ended with everything that it
started.

What a plugin's processes may take, and what they have taken.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import psutil
from django.conf import settings
from django.utils.translation import gettext

from tools.plugins.peer import open_pipe_streams
from tools.processes.child import Child, find_descendants
from tools.processes.process_reaper import keeper_command
from tools.tasks import end_tasks

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


RUNNER = Path(__file__).with_name("runner.py")

#: Characters of a printed line that are kept, and lines that are shown with a crash.
LINE_CHARS, LAST_LINES = 2_000, 20
#: How much of its output is read in one go, and per second: a process that prints more has to wait.
CHUNK_BYTES, BYTES_PER_SECOND = 16 * 1024, 256 * 1024
#: Between asking a process to end and killing it; after its end, for the last words.
TERMINATE_SECONDS, LAST_WORDS_SECONDS = 0.5, 0.5

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
OutputListener = Callable[[str, str], object]
"""Called with each printed line and its stream: ``stdout`` or ``stderr``."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """Why a process is no longer there, in words for the operator, and the last that it wrote to
    stderr."""

    reason: str
    last_words: str = ""


class RunnerProcess:
    """A runner and its child processes; :meth:`spawn` creates one. Used from the event loop's
    thread."""

    def __init__(
        self, process: Process, streams: Streams, said: Mapping[str, int], hear: OutputListener
    ) -> None:
        self.pid = process.pid
        self.streams = streams
        self._process = process
        self._hear = hear
        self._last = deque[str](maxlen=LAST_LINES)
        self._reason = ""
        self._child = Child(process)
        self._listeners = [
            asyncio.create_task(self._listen(name, pipe)) for name, pipe in said.items()
        ]
        self.ended = asyncio.create_task(self._watch_exit(), name=f"runner {process.pid}")
        """Done once the process and all below it are gone."""

    @classmethod
    async def spawn(cls, folder: Path, hear: OutputListener) -> Self:
        """Start a runner for the plugin in ``folder``. Raises OSError when that cannot be done;
        after cancellation nothing is left of it.

        It has nothing of this server's environment, which holds keys.
        """
        starting = asyncio.create_task(cls._start(folder, hear))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # Half a start would leave a process, or a pipe, that nobody ends.
            with contextlib.suppress(OSError):
                await (await starting).kill()
            raise

    @classmethod
    async def _start(cls, folder: Path, hear: OutputListener) -> Self:
        # Pipes of our own for what it prints: asyncio's would keep wait() waiting for as long as
        # anybody holds them.
        (reads, out), (back, writes), (said, stdout), (cried, stderr) = (
            os.pipe() for _ in range(4)
        )
        try:
            process = await asyncio.create_subprocess_exec(
                *keeper_command(
                    sys.executable, "-I", str(RUNNER), str(folder), str(reads), str(writes)
                ),
                cwd=folder,
                env={"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": settings.TIME_ZONE},
                stdin=DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(reads, writes),
            )
        except BaseException:
            _close(back, out, said, cried)
            raise
        finally:
            _close(reads, writes, stdout, stderr)
        return cls(
            process, await open_pipe_streams(back, out), {"stdout": said, "stderr": cried}, hear
        )

    def runner_pid(self) -> int:
        """The process that the plugin runs in, as far as it can be seen; else its keeper. To be
        asked while it runs."""
        return self._child.find_program()

    async def terminate(self, reason: str = "") -> ProcessExit:
        """Have it ended, if it still runs: asked, then killed. ``reason``: why that is done."""
        if not await self._is_gone(0):
            self._reason = self._reason or reason
            self._child.signal(signal.SIGTERM)
        if not await self._is_gone(TERMINATE_SECONDS):
            return await self.kill()
        return self.ended.result()

    async def kill(self, reason: str = "") -> ProcessExit:
        """Kill it immediately, with everything that it started."""
        self._reason = self._reason or reason
        await self._child.kill()
        return await asyncio.shield(self.ended)

    async def _is_gone(self, seconds: float) -> bool:
        done, _ = await asyncio.wait([self.ended], timeout=seconds)
        return bool(done)

    async def _watch_exit(self) -> ProcessExit:
        status = await self._process.wait()
        await self._child.end_orphans()
        await end_tasks(self._listeners, LAST_WORDS_SECONDS)
        last = "\n".join(self._last)
        return ProcessExit(self._reason or describe_exit(status, last), last)

    async def _listen(self, name: str, pipe: int) -> None:
        """Hand on what comes in, line by line, no faster than it is wanted."""
        stream, begun = asyncio.StreamReader(limit=CHUNK_BYTES), ""
        file = os.fdopen(pipe, "rb", 0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), file
        )
        try:
            while chunk := await stream.read(CHUNK_BYTES):
                *lines, begun = (begun + chunk.decode("utf-8", "replace")).split("\n")
                for line in lines:
                    self._heard(name, line)
                begun = begun[-4 * LINE_CHARS :]
                await asyncio.sleep(len(chunk) / BYTES_PER_SECOND)
        finally:
            transport.close()
        if begun:
            self._heard(name, begun)

    def _heard(self, name: str, line: str) -> None:
        line = line.rstrip()[:LINE_CHARS]
        if name == "stderr":
            self._last.append(line)
        if line:
            self._hear(name, line)


def _close(*pipes: int) -> None:
    for pipe in pipes:
        os.close(pipe)


def describe_exit(status: int, last_words: str = "") -> str:
    """The keeper's exit status in words for the operator."""
    if "MemoryError" in last_words.rpartition("\n")[2]:
        return gettext("It ran out of the memory that it may have.")
    if status < 0:
        return gettext("The process that watches over it was killed.")
    if status < 128:
        return gettext("It ended by itself, with exit code %(code)d.") % {"code": status}
    match status - 128:
        case signal.SIGKILL:
            return gettext(
                "It was killed (SIGKILL): the machine was out of memory, or somebody did it."
            )
        case signal.SIGXCPU:
            return gettext("It used more processor time than it may.")
        case number:
            known = {each.value: each.name for each in signal.Signals}
            return gettext("It was ended by signal %(signal)s.") % {
                "signal": known.get(number, number)
            }
