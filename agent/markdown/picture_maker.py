"""Having parts of an answer drawn, in a process of their own for each answer."""

import asyncio
import base64
import json
import logging
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Any

from tools.log_limit import LogLimit
from tools.processes.one_shot import read_output, start_program

logger = logging.getLogger(__name__)
LogLimit(logger)

#: What takes longer is given up, and sent as text; in seconds.
DRAW_SECONDS = 15.0
#: The same with the wait for its turn.
PATIENCE_SECONDS = 30.0
#: Answers that are drawn at the same time; others wait.
AT_ONCE = 2
PROGRAM = ("-m", "agent.markdown.drawing")


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
                output = await read_output(await _start(), DRAW_SECONDS, json.dumps(jobs).encode())
            drawn = json.loads(output or b"[]")
        except (OSError, TimeoutError, ValueError) as error:
            logger.warning("Parts of an answer could not be drawn: %r", error)
            return nothing
        return [base64.b64decode(one) for one in drawn] if len(drawn) == len(jobs) else nothing


async def _start() -> Process:
    return await start_program(*PROGRAM)
