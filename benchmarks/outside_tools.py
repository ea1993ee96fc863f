"""What it costs to list the tools of MCP servers, printed as JSON. Runs in a child process with
Django set up.

``offer_ms`` is what a step of a run needs to know what it offers, connected to real
servers over stdio; ``offer_ms_without`` the same where there are none.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from django.core.management import call_command

from agent.record.record import Record
from agent.runtime import wiring
from benchmarks.outside_costs import SERVERS, TOOLS, TOOLS_EACH
from tools.contract import ToolAvailabilityContext
from tools.models import McpServer, McpServerStatus
from tools.registry.registry import ToolRegistry

CHAT = ToolAvailabilityContext(
    session_id="group:1",
    is_group_chat=True,
    group_id="1",
    user_id="2",
    platform="onebot",
    is_owner=True,
)
CALLS, ROUNDS = 500, 5
CONNECT_SECONDS = 60
_PROGRAM = Path(__file__).with_name("outside_server.py")


def switch(servers: int) -> None:
    """Have so many of the servers switched on and the others off; returns when the running server
    has followed."""
    for number in range(SERVERS):
        row = McpServer.objects.filter(name=f"outside {number}").first() or McpServer(
            name=f"outside {number}"
        )
        row.command = sys.executable
        row.arguments = ["-I", "-S", str(_PROGRAM), f"server{number}", str(TOOLS_EACH)]
        row.enabled = number < servers
        row.save()
    end = time.monotonic() + CONNECT_SECONDS
    while (connected := _connected()) != servers:
        if time.monotonic() > end:
            raise TimeoutError(
                f"{connected} of {servers} servers are connected: {list(McpServerStatus.objects.values())}"
            )
        time.sleep(0.1)


def _connected() -> int:
    statuses = McpServerStatus.objects.filter(state=McpServerStatus.ConnectionState.CONNECTED)
    return sum(len(status.tools) == TOOLS_EACH for status in statuses)


async def measured(record: Record) -> dict[str, float]:
    """The registry with all that a server has, once its outside servers are connected and before
    they are there."""
    registry = wiring.build_tool_registry(lambda: record.live.current, record)
    without = await _least_ms(registry)
    providers = wiring.build_live_providers(record, wiring.build_endpoint_book())
    for provider in providers:
        registry.register_provider(provider)
        provider.start()
    await record.submit(record.run_starter.reload_settings)
    async with asyncio.timeout(CONNECT_SECONDS):
        while len(await registry.list_tools()) < TOOLS:  # noqa: ASYNC110 - the servers make it so
            await asyncio.sleep(0.1)
    figures = {"offer_ms": await _least_ms(registry), "offer_ms_without": without}
    await registry.close()
    await record.close()
    return {name: round(value, 4) for name, value in figures.items()}


async def _least_ms(registry: ToolRegistry) -> float:
    await registry.offering(CHAT)
    times = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        for _ in range(CALLS):
            await registry.offering(CHAT)
        times.append(1000 * (time.thread_time() - began) / CALLS)
    return min(times)


def main() -> None:
    call_command("migrate", verbosity=0)
    McpServer.objects.update(enabled=True)
    print(json.dumps(asyncio.run(measured(Record("bench")))))
