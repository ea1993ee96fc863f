"""Pages that wait for the loop of the server, in other threads."""

import asyncio
import threading
from typing import Any, cast

import pytest

from agent.runtime import serving
from agent.runtime.serving import ServingRegistry
from agent.runtime.steering import Steering
from tools.registry.registry import ToolRegistry


def served() -> ServingRegistry:
    made = ServingRegistry(
        cast("ToolRegistry", object()),
        asyncio.get_running_loop(),
        steering=cast("Steering", object()),
    )
    serving.begin_serving(made)
    return made


async def test_a_page_that_waits_goes_on_when_the_server_ends():
    begun = threading.Event()
    made = served()

    async def never(_steering: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    page = asyncio.create_task(asyncio.to_thread(made.steer, never))
    await asyncio.to_thread(begun.wait)
    serving.end_serving(made.registry)
    assert serving.get_serving() is None
    async with asyncio.timeout(serving.STEER_SECONDS / 2):
        await page


async def test_who_comes_after_the_end_does_not_wait():
    made = served()
    serving.end_serving(made.registry)

    async def never(_registry: ToolRegistry) -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(serving.STEER_SECONDS / 2):
        with pytest.raises(LookupError):
            await asyncio.to_thread(made.run, never)
