"""Having parts of an answer drawn, in a process of their own for each answer."""

import asyncio
import base64
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tools.log_limit import LogLimit

logger = logging.getLogger(__name__)
LogLimit(logger)

#: What takes longer is given up, and sent as text; in seconds.
DRAW_SECONDS = 15.0
#: How long a killed process is waited for, in seconds.
GONE_SECONDS = 2.0
#: The same with the wait for its turn.
PATIENCE_SECONDS = 30.0
#: Answers that are drawn at the same time; others wait.
AT_ONCE = 2
PROGRAM = ("-m", "agent.markdown.drawing")
ROOT = Path(__file__).resolve().parents[2]


class PictureMaker:
    """Draws with :mod:`agent.markdown.drawing`; the event loop only waits."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def draw(self, jobs: Sequence[dict[str, Any]]) -> list[bytes]:
        """A PNG for each of ``jobs``, b"" for one that could not be drawn. When cancelled, the
        process is gone."""
        nothing = [b""] * len(jobs)
        if not jobs:
            return nothing
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), self._turns:
                output = await _output(await _start(), json.dumps(jobs).encode())
            drawn = json.loads(output or b"[]")
        except (OSError, TimeoutError, ValueError) as error:
            logger.warning("Parts of an answer could not be drawn: %r", error)
            return nothing
        return [base64.b64decode(one) for one in drawn] if len(drawn) == len(jobs) else nothing


async def _start() -> Process:
    # Without this process's environment, which holds the keys, but for where packages are; in a
    # group of its own, as for the image worker.
    return await asyncio.create_subprocess_exec(
        *(sys.executable, *PROGRAM),
        cwd=ROOT,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        process_group=0,
    )


async def _output(process: Process, jobs: bytes) -> bytes:
    """What ``process`` writes until it ends well; b"" when it does not. Raises TimeoutError. It is
    gone afterwards, also after cancellation."""
    try:
        async with asyncio.timeout(DRAW_SECONDS):
            output, _ = await process.communicate(jobs)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(GONE_SECONDS):
                await process.wait()
    return output if process.returncode == 0 else b""
