"""Runs a program, which is the server, with COUNT tools of a developer's own: ``COUNT [-m MODULE | FILE] [ARGS]``.

They are added where CONTRIBUTING.md says that tools are added. ``COUNT --cost``
prints instead what they cost the registry by itself, as JSON. Runs in a child
process with Django set up.
"""

import asyncio
import json
import runpy
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from agent.runtime import wiring
from tools.contract import ToolExecutionContext, ToolInvocation
from tools.functions.function_tool import FunctionProvider, FunctionTool
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

CALLS = 500
ROUNDS = 5


async def look_up(
    city: str,
    days: Annotated[int, Field(ge=1, le=14)] = 3,
    unit: Literal["celsius", "fahrenheit"] = "celsius",
    tags: list[str] | None = None,
) -> str:
    """Look up one of the many things that are known about a city.

    Args:
        city: where it is, in any language
        days: for how many days, from today on
        unit: what temperatures are given in
        tags: what else is wanted
    """
    return f"{city}: sunny, {days} days"


def own_tools(count: int) -> tuple[FunctionTool, ...]:
    """``look_up_0``, ``look_up_1`` …; four arguments each, as tools have."""
    return tuple(FunctionTool(look_up, name=f"look_up_{number}") for number in range(count))


def costs(tools: tuple[FunctionTool, ...]) -> dict[str, float]:
    """Milliseconds of CPU: listing and defining all ``tools`` for one message, and one call, with
    rows and a chat."""
    rows = {tool.spec.name: ToolSettings(tool.spec.name, provider_name="own") for tool in tools}
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(FunctionProvider("own", "builtin", tools))
    chat = ToolExecutionContext(
        session_id="group:1", is_group_chat=True, group_id="1", user_id="2", platform="onebot"
    )
    call = ToolInvocation(tools[-1].spec.name, '{"city": "北京", "days": "2", "tags": ["wind"]}')  # type: ignore[arg-type] # as models write
    return {
        "listing_ms": _least_ms(lambda: registry.offering(chat.availability())),
        "call_ms": _least_ms(lambda: registry.invoke(call, chat)),
    }


def _least_ms(work: Callable[[], Awaitable[object]]) -> float:
    async def once() -> float:
        began = time.thread_time()
        for _ in range(CALLS):
            await work()
        return 1000 * (time.thread_time() - began) / CALLS

    return round(min(asyncio.run(once()) for _ in range(ROUNDS)), 4)


def main() -> None:
    count, *sys.argv = sys.argv[1:]
    tools = own_tools(int(count))
    if sys.argv == ["--cost"]:
        print(json.dumps(costs(tools)))
        return
    wiring.SAMPLE_TOOLS += tools
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
