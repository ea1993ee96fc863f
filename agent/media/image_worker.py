"""Making pictures fit for a model, and thumbnails, in the process that decodes them."""

import asyncio
import json
import os
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from django.utils.translation import gettext_noop

from agent.domain.media_refs import MediaUnavailable

#: A picture that takes longer is given up, and its process ended; in seconds.
JOB_SECONDS = 20.0
#: How long the process is kept without work, in seconds.
IDLE_SECONDS = 600.0
Pipe = TypeVar("Pipe", asyncio.StreamReader, asyncio.StreamWriter)
COMMAND = (sys.executable, "-m", "agent.media.image_decoder")
ROOT = Path(__file__).resolve().parents[2]

BROKEN = gettext_noop("the picture cannot be decoded")
TOO_LARGE = gettext_noop("the picture has too many pixels")
NO_PROCESS = gettext_noop("the program that decodes pictures cannot be started")
TOO_SLOW = gettext_noop("the picture takes too long to decode")


@dataclass(frozen=True, slots=True)
class ImageJob:
    """How to convert the picture ``source``, by the rules of :mod:`agent.media.image_decoder`."""

    source: Path
    target: Path
    side: int
    size: int
    pixels: int
    always: bool = False
    """Whether a picture within the limits is converted too."""

    def line(self) -> bytes:
        fields = {"source": str(self.source), "target": str(self.target)}
        limits = {
            "side": self.side,
            "bytes": self.size,
            "pixels": self.pixels,
            "always": self.always,
        }
        return json.dumps({**fields, **limits}).encode() + b"\n"


class ImageWorker:
    """Decodes one picture at a time, in a process of its own that is started when there is work.

    The event loop only waits. A picture that ends the process costs itself alone.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._child: asyncio.Task[Process] | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    def warm_up(self) -> None:
        """Start the process, for there will be work soon. Returns at once."""
        if self._child is None:
            self._child = asyncio.create_task(_start(), name="decoder")

    async def process(self, job: ImageJob) -> None:
        """Do ``job``; its target is there afterwards unless the source is fit as it is.

        Raises :class:`MediaUnavailable` for what is no picture or too much of one. After
        cancellation the job is stopped.
        """
        async with self._turn:
            answer = await self._ask(job.line())
        _check(answer)

    async def close(self) -> None:
        """End the process; another one starts with the next job."""
        if self._rest is not None:
            self._rest.cancel()
        started, self._child = self._child, None
        if started is not None:
            child = await started
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        if self._ending is not None:
            await self._ending

    async def _ask(self, line: bytes) -> bytes:
        """The answer, b"" when the process ended over the job."""
        child = await self._running()
        answer = b""
        try:
            async with asyncio.timeout(JOB_SECONDS):
                _pipe(child.stdin).write(line)
                await _pipe(child.stdin).drain()
                answer = await _pipe(child.stdout).readline()
        except TimeoutError as error:
            raise MediaUnavailable(TOO_SLOW) from error
        except ConnectionError:
            return b""
        finally:
            if not answer:  # an answer that is not read would be taken for that to the next job
                await asyncio.shield(self.close())
        self._rest_later()
        return answer

    async def _running(self) -> Process:
        self.warm_up()
        assert self._child is not None  # noqa: S101 - since the line before
        try:
            return await asyncio.shield(self._child)
        except OSError as error:
            self._child = None
            raise MediaUnavailable(NO_PROCESS) from error

    def _rest_later(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._let_go)

    def _let_go(self) -> None:
        """End the process by the end of its input, if nothing is asked of it just now."""
        if self._child is not None and not self._turn.locked():
            self._ending = asyncio.create_task(_end(self._child.result()))
            self._child = None


async def _start() -> Process:
    # Without this process's environment, which holds the keys; in a group of its own,
    # so that Ctrl-C in a terminal does not end it before the work is done. Not in a
    # session of its own: Linux shares the processor among sessions first (sched(7),
    # autogroup), and that this process is nice would be of no use to the others.
    return await asyncio.create_subprocess_exec(
        *COMMAND, cwd=ROOT, env=_environment(), stdin=PIPE, stdout=PIPE, process_group=0
    )


def process_image_now(job: ImageJob) -> None:
    """Do ``job`` in a process of its own and wait for it: for pages, which are made in threads.

    Raises :class:`MediaUnavailable` as :meth:`ImageWorker.process` does.
    """
    try:
        done = subprocess.run(  # noqa: S603 - the command is this program's own
            COMMAND,
            input=job.line(),
            stdout=PIPE,
            cwd=ROOT,
            env=_environment(),
            timeout=JOB_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MediaUnavailable(TOO_SLOW) from error
    except OSError as error:
        raise MediaUnavailable(NO_PROCESS) from error
    _check(done.stdout)


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _check(answer: bytes) -> None:
    """Raise :class:`MediaUnavailable` for an answer that says so, or for none."""
    if not answer:
        raise MediaUnavailable(BROKEN)
    if error := json.loads(answer).get("error"):
        raise MediaUnavailable(TOO_LARGE if "too many pixels" in error else BROKEN)


async def _end(child: Process) -> None:
    _pipe(child.stdin).close()
    await child.wait()


def _pipe(pipe: Pipe | None) -> Pipe:
    assert pipe is not None  # noqa: S101 - both are asked for
    return pipe
