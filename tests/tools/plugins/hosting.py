"""The host of plugins as a server has it: real processes, a real database, rows that the test
changes as an operator would."""

import asyncio
import contextlib
import inspect
import json
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from agent.record.ground.commit import GroupCommit
from tests.tools.plugins.processes import write_plugin
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.models import Plugin, PluginCrash, PluginLogLine, PluginStatus
from tools.plugins import host
from tools.plugins.capabilities import CallInFlight, CapabilityService
from tools.plugins.host import PluginHost
from tools.plugins.process import MIB, ProcessLimits
from tools.plugins.provider import PluginToolProvider
from tools.plugins.supervisor import RestartPolicy
from tools.registry.registry import ToolRegistry

T = TypeVar("T")
PATIENCE = 90.0
PLUGINS: Any = Plugin.objects
LIMITS = ProcessLimits(memory_bytes=512 * MIB, cpu_seconds=30, open_files=256, processes=16)
#: Quick to start again and slow to ask whether a plugin is well, which is too busy a machine's
#: undoing.
PACE = RestartPolicy(pause=0.05, look=0.05, stable=3600, drain=5)

GREETS = """
from tools.plugin_sdk import Tool

@Tool
def greet(name: str) -> str:
    return f"hello {name}"
"""


class Desk(GroupCommit):
    """A database thread, as a server's, under the name ``p1``."""

    process_id = "p1"


class Services:
    """Does nothing for any chat but remember what was to be said."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def send_text(self, call: CallInFlight, text: str) -> str:
        await self.hold.wait()
        self.sent.append((call.context.session_id, text))
        return "sent"

    async def history(self, call: CallInFlight, number: int) -> list[dict[str, Any]]:
        return []

    async def generate(self, call: CallInFlight, prompt: str) -> str:
        return prompt

    async def close(self) -> None:
        """Nothing is held."""


class Hosting:
    """One host and the registry over it. What is waited for is waited for with patience."""

    def __init__(self, root: Path, limits: ProcessLimits, pace: RestartPolicy) -> None:
        self.root = root
        self.desk = Desk()
        self.services = Services()
        capabilities = CapabilityService(self.desk, self.services)
        self.host = PluginHost(
            self.desk, root, limits, capabilities, reserved=["reply"], restart_policy=pace
        )
        self.registry = ToolRegistry()
        self.registry.register_provider(PluginToolProvider(self.host))

    async def read(self, query: Callable[[], T]) -> T:
        return await self.desk.submit(query)

    async def change(self, folder: str, **values: Any) -> None:
        """Save the row of the plugin in ``folder``, and have it obeyed, as every process does
        within a second."""

        def save() -> None:
            PLUGINS.filter(folder=folder).update(**values)
            self.host.reload()

        await self.read(save)

    async def until(self, query: Callable[[], Any]) -> Any:
        """The first result of ``query``, in the database thread, that is true."""
        return await becomes(lambda: self.read(query))

    async def found(self, folder: str) -> Any:
        return await self.until(lambda: PLUGINS.filter(folder=folder).first())

    async def enable(self, *folders: str, **values: Any) -> None:
        """Switch plugins on, and wait for their tools."""
        for folder in folders:
            await self.found(folder)
            await self.change(folder, enabled=True, **values)
        for folder in folders:
            await self.state(folder, "running")

    async def state(self, folder: str, state: str) -> Any:
        """The row that says how the plugin gets on, once it is in that state."""
        return await self.until(
            lambda: PluginStatus.objects.filter(plugin__folder=folder, state=state).first()
        )

    async def crash(self, folder: str, words: str = "") -> Any:
        """The report of a crash of the plugin whose reason holds ``words``."""
        rows = PluginCrash.objects.filter(plugin__folder=folder, reason__contains=words)
        return await self.until(lambda: rows.all().first())

    async def line(self, folder: str, words: str) -> Any:
        rows = PluginLogLine.objects.filter(plugin__folder=folder, text__contains=words)
        return await self.until(lambda: rows.all().first())

    async def call(
        self, name: str, /, *, session: str = "qq:group:7", call_id: str = "", **arguments: Any
    ) -> ToolExecutionResult:
        """Call a tool for an owner: nobody has looked at any of them."""
        context = ToolExecutionContext(
            session_id=session, group_id="7", user_id="42", platform="qq", is_group_chat=True
        )
        context.owners = {"42"}
        return await self.registry.invoke(ToolInvocation(name, arguments, call_id=call_id), context)

    async def tools(self) -> list[str]:
        return [spec.name for spec in await self.registry.list_tools()]

    async def greets(self, name: str = "greet") -> bool:
        """Whether a plugin with that tool answers."""
        return (await self.call(name, name="you")).content == "hello you"


async def becomes(check: Callable[[], Any]) -> Any:
    """The first value of ``check``, awaited where it has to be, that is true."""
    async with asyncio.timeout(PATIENCE):
        while not (value := await found if inspect.isawaitable(found := check()) else found):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return value


@contextlib.asynccontextmanager
async def hosted(root: Path, limits: ProcessLimits = LIMITS, **pace: Any) -> AsyncIterator[Hosting]:
    """A host that serves the plugins in ``root``; everything is over at the end."""
    hosting = Hosting(root, limits, replace(PACE, **pace))
    hosting.host.start()
    try:
        with patch.object(host, "GATHER_SECONDS", 0.02):  # rows are what the tests wait for
            yield hosting
    finally:
        async with asyncio.timeout(PATIENCE):
            await hosting.registry.close()
            await hosting.desk.close()


def plugin(root: Path, folder: str, source: str = GREETS, **manifest: Any) -> Path:
    """A plugin with a sound manifest; what is given in ``manifest`` is other."""
    root.mkdir(exist_ok=True)
    said = {
        "manifest_version": 2,
        "id": f"test.{folder}",
        "version": "1.0.0",
        "name": folder,
        "description": "A plugin of a test.",
        "author": {"name": "Test"},
        "license": "MIT",
        **manifest,
    }
    path = write_plugin(root / folder, source)
    (path / "_manifest.json").write_text(json.dumps(said), encoding="utf-8")
    return path


def rewrite(file: Path, text: str) -> None:
    """Change a file as editors do: all at once."""
    draft = file.with_name(f".{file.name}.new")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, file)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(*processes: int) -> Any:
    """Whether all of them end before long."""
    return await becomes(lambda: not any(map(is_alive, processes)))
