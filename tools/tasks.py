"""The end of tasks that run in the background."""

import asyncio
from collections.abc import Iterable
from typing import Any


async def end_tasks(tasks: "Iterable[asyncio.Task[Any]]", seconds: float | None = None) -> None:
    """Give ``tasks`` so many ``seconds``, if any, then cancel those that are left; returns once all
    have ended. What they raise is not told."""
    running = list(tasks)
    if running and seconds is not None:
        await asyncio.wait(running, timeout=seconds)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
