"""A call of a tool over stdio, by the official library alone and through our registry, printed as
JSON.

Runs in a child process with Django set up. Both talk to a server process of their own, of
the same program, by turns in one run, so that whatever else the machine does befalls both.
``added_ms`` is the difference of the medians; ``busy_added_ms`` the same with eight calls
at once, per call.
"""

import asyncio
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.core.management import call_command
from mcp import Client, StdioServerParameters

from agent.record.ground.commit import GroupCommit
from benchmarks.timing import AT_ONCE, Call, busy, timed
from tools.contract import ToolExecutionContext, ToolInvocation
from tools.mcp.provider import McpToolProvider
from tools.mcp.settings import load_server_settings
from tools.models import McpServer
from tools.registry.registry import ToolRegistry
from tools.secrets.models import load_secrets

SERVER = str(Path(__file__).with_name("mcp_server.py"))
ARGUMENTS = {"city": "北京", "days": 3}
TURNS = 20


class Desk:
    """A database thread, as a process that serves has one."""

    process_id = "bench"

    def __init__(self) -> None:
        self.commit = GroupCommit()
        self.submit = self.commit.submit


async def serving(desk: Any) -> ToolRegistry:
    """A registry that has the server's tool."""
    registry, provider = ToolRegistry(), McpToolProvider(desk)
    registry.register_provider(provider)
    provider.obey(await sync_to_async(lambda: load_server_settings(load_secrets()))())
    provider.start()
    while not await registry.has_tool("weather"):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    return registry


async def compared(alone: Call, ours: Call, count: int) -> dict[str, float]:
    singles: dict[str, list[float]] = {"sdk": [], "ours": []}
    bursts: dict[str, list[float]] = {"sdk": [], "ours": []}
    each = max(AT_ONCE, count // TURNS)
    for turn in range(TURNS):
        for name, call in sorted({"sdk": alone, "ours": ours}.items(), reverse=bool(turn % 2)):
            singles[name] += await timed(call, each)
            bursts[name].append(await busy(call, each))
    medians = {f"{name}_ms": statistics.median(times) for name, times in singles.items()}
    medians |= {f"busy_{name}_ms": statistics.median(times) for name, times in bursts.items()}
    added = {
        "added_ms": medians["ours_ms"] - medians["sdk_ms"],
        "busy_added_ms": medians["busy_ours_ms"] - medians["busy_sdk_ms"],
    }
    return {name: round(value, 3) for name, value in (added | medians).items()}


async def measured(count: int) -> dict[str, float]:
    desk = Desk()
    registry = await serving(desk)
    context = ToolExecutionContext(user_id="1", owners={"1"})
    try:
        async with Client(StdioServerParameters(command=sys.executable, args=[SERVER])) as client:

            async def alone() -> None:
                answer = await client.call_tool("weather", ARGUMENTS)
                assert not answer.is_error

            async def ours() -> None:
                result = await registry.invoke(ToolInvocation("weather", dict(ARGUMENTS)), context)
                assert result.success, result

            await timed(alone, 20)
            await timed(ours, 20)
            return await compared(alone, ours, count)
    finally:
        await registry.close()
        await desk.commit.close()


def main() -> None:
    call_command("migrate", verbosity=0)
    McpServer(name="bench", command=sys.executable, arguments=[SERVER]).save()
    print(json.dumps(asyncio.run(measured(int(sys.argv[1])))))
