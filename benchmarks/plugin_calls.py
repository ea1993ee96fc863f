"""A call of a plugin's tool through the registry, and the same function called where it is, printed
as JSON.

Runs in a child process with Django set up. By turns in one run, so that whatever else the
machine does befalls both. ``added_ms`` is the difference of the medians for an ``async
def``, ``thread_added_ms`` for a ``def``, which runs in a thread of the plugin's process;
``busy_added_ms`` is the first with eight calls at once, per call. ``runner_mib`` is the
memory of the plugin's process and its keeper, of which ``runner_own_mib`` is shared with nobody.
"""

import asyncio
import inspect
import json
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.core.management import call_command

from agent.record.ground.commit import GroupCommit
from benchmarks.machine import usage
from benchmarks.timing import AT_ONCE, Call, busy, timed
from tools.contract import ToolExecutionContext, ToolInvocation
from tools.models import Plugin
from tools.plugins.capabilities import CallInFlight, CapabilityService
from tools.plugins.host import PluginHost
from tools.plugins.process import ProcessLimits
from tools.plugins.provider import PluginToolProvider
from tools.registry.registry import ToolRegistry

ARGUMENTS = {"city": "北京", "days": 3}
TURNS = 20


async def look_up(city: str, days: int = 1) -> str:
    """What is measured: hardly anything."""
    return f"{city}: sunny, {days} days"


def look_up_in_a_thread(city: str, days: int = 1) -> str:
    return f"{city}: sunny, {days} days"


MANIFEST = {
    "manifest_version": 2,
    "id": "bench.look-up",
    "version": "1.0.0",
    "name": "bench",
    "description": "What is measured.",
    "author": {"name": "bench"},
    "license": "MIT",
}
SOURCE = "from tools.plugin_sdk import Tool\n\n" + "\n".join(
    f"@Tool\n{inspect.getsource(function)}" for function in (look_up, look_up_in_a_thread)
)


class Desk:
    """A database thread, as a process that serves has one."""

    process_id = "bench"

    def __init__(self) -> None:
        self.commit = GroupCommit()
        self.submit = self.commit.submit


class NoServices:
    """Nothing is asked of any chat."""

    async def send_text(self, call: CallInFlight, text: str) -> str:
        return ""

    async def history(self, call: CallInFlight, number: int) -> list[dict[str, Any]]:
        return []

    async def generate(self, call: CallInFlight, prompt: str) -> str:
        return ""

    async def close(self) -> None:
        """Nothing is held."""


async def serving(desk: Any, root: Path) -> tuple[ToolRegistry, PluginHost]:
    """A registry that has the plugin's tools."""
    host = PluginHost(
        desk, root, ProcessLimits.from_settings(), CapabilityService(desk, NoServices())
    )
    registry = ToolRegistry()
    registry.register_provider(PluginToolProvider(host))
    host.start()
    while not await sync_to_async(Plugin.objects.update)(enabled=True):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await sync_to_async(host.reload)()
    while not await registry.has_tool("look_up"):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    return registry, host


async def compared(registry: ToolRegistry, count: int) -> dict[str, float]:
    context = ToolExecutionContext(session_id="s1", user_id="1", owners={"1"})

    async def ours(name: str) -> None:
        result = await registry.invoke(ToolInvocation(name, dict(ARGUMENTS)), context)
        assert result.content == "北京: sunny, 3 days", result

    async def in_place() -> None:
        look_up_in_a_thread(**ARGUMENTS)  # type: ignore[arg-type]

    calls: dict[str, Call] = {
        "function": partial(look_up, **ARGUMENTS),  # type: ignore[arg-type]
        "plain_function": in_place,
        "plugin": partial(ours, "look_up"),
        "thread": partial(ours, "look_up_in_a_thread"),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    bursts: dict[str, list[float]] = {name: [] for name in ("function", "plugin")}
    each = max(AT_ONCE, count // TURNS)
    for turn in range(TURNS):
        for name in sorted(calls, reverse=bool(turn % 2)):
            times[name] += await timed(calls[name], each)
            if name in bursts:
                bursts[name].append(await busy(calls[name], each))
    return differences({name: statistics.median(each) for name, each in times.items()}, bursts)


def differences(medians: dict[str, float], bursts: dict[str, list[float]]) -> dict[str, float]:
    busy_ones = {name: statistics.median(each) for name, each in bursts.items()}
    return {
        "added_ms": medians["plugin"] - medians["function"],
        "thread_added_ms": medians["thread"] - medians["plain_function"],
        "busy_added_ms": busy_ones["plugin"] - busy_ones["function"],
        "call_ms": medians["plugin"],
    }


async def measured(root: Path, count: int) -> dict[str, float]:
    desk = Desk()
    registry, host = await serving(desk, root)
    try:
        figures = await compared(registry, count)
        link = next(iter(host.tools.values())).supervisor.serving
        assert link is not None
        used = usage(link.process.pid)
    finally:
        await registry.close()
        await desk.commit.close()
    figures |= {"runner_mib": used.rss_mib, "runner_own_mib": used.anonymous_mib}
    return {name: round(value, 3) for name, value in figures.items()}


def main() -> None:
    call_command("migrate", verbosity=0)
    with tempfile.TemporaryDirectory(prefix="frost-bench-plugins-") as root:
        folder = Path(root, "look-up")
        folder.mkdir()
        (folder / "_manifest.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
        (folder / "plugin.py").write_text(SOURCE, encoding="utf-8")
        print(json.dumps(asyncio.run(measured(Path(root), int(sys.argv[1])))))
