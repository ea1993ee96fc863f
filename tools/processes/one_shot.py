"""Programs of our own that run once for one thing, in a process that holds nothing else: what is
read or drawn there comes from outside, and cannot harm the server.

The program limits itself first (:mod:`tools.processes.own_limits`).
"""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import IO, Any

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
