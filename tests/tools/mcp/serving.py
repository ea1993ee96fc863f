"""What tests of MCP share: servers to talk to, and a provider that follows real rows."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async

from agent.record.ground.commit import GroupCommit
from tests.live_server import free_port
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.fetch.allow_list import AllowList
from tools.fetch.request import DestinationResolver
from tools.mcp.link import McpConnection
from tools.mcp.provider import McpToolProvider, load_session_opener
from tools.mcp.settings import McpServerSettings, load_server_settings
from tools.mcp.specs import SessionOpener
from tools.models import McpServer
from tools.registry.catalogue import DatabaseThread
from tools.registry.registry import ToolRegistry
from tools.registry.settings import load_tool_settings
from tools.secrets.models import load_secrets

HERE = Path(__file__).parent
GOOD = HERE / "good_server.py"
HOSTILE = HERE / "hostile_server.py"
SLOPPY = HERE / "sloppy_tools.json"
"""A list of tools with entries among them that are none by the protocol."""
PATIENCE = 60
LOCAL = AllowList.parse(["127.0.0.1"])


async def until(condition: Callable[[], Any]) -> None:
    """Wait for something that comes by itself."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


def good(**more: Any) -> McpServerSettings:
    return McpServerSettings(
        1, "good", command=sys.executable, arguments=(str(GOOD), "stdio"), **more
    )


def hostile(problem: str, *arguments: object, **more: Any) -> McpServerSettings:
    words = ("-I", "-S", str(HOSTILE), problem, *map(str, arguments))
    return McpServerSettings(1, "hostile", command=sys.executable, arguments=words, **more)


def row(settings: McpServerSettings, name: str = "", **more: Any) -> McpServer:
    """A saved row that says the same as ``settings``."""
    made = McpServer(
        name=name or settings.name, command=settings.command, transport=settings.transport
    )
    made.arguments = list(settings.arguments)
    for key, value in more.items():
        setattr(made, key, value)
    made.save()
    return made


async def connecting() -> SessionOpener:
    return await load_session_opener(DestinationResolver(LOCAL))


@asynccontextmanager
async def linked(
    settings: McpServerSettings, *, is_up: bool = True, load: Callable[[], Any] = connecting
) -> AsyncIterator[McpConnection]:
    """A link to that server; closed at the end. Without ``is_up`` nobody waits for it to be
    there."""
    link = McpConnection(settings, load, lambda _link: None, frozenset({"reply"}))
    link.start()
    try:
        if is_up:
            await until(lambda: link.is_offered)
        yield link
    finally:
        await link.close(5)


async def said(link: McpConnection, tool: str = "fine", **arguments: Any) -> str:
    """The text of a result."""
    answer = await link.call(tool, arguments, None, may_repeat=False)
    return str(answer["content"][0]["text"])


def only_the_sloppy_are_left_out(link: McpConnection) -> dict[str, str]:
    """Of what :data:`SLOPPY` lists, the sound tools are offered; returns why others are not, by
    their names."""
    schemas = {spec.name: spec.parameters_schema for spec in link.catalogue.specs}
    assert list(schemas) == ["tool", "bare", "null", "empty", "php", "untyped", "fine"]
    assert [schemas[name] for name in ("bare", "null", "empty", "php")] == [
        {"type": "object", "properties": {}}
    ] * 4
    assert "a" in (schemas["untyped"] or {})["properties"]
    status = link.status("p")
    left_out = [(one["original"], one["left_out"]) for one in status.tools if "left_out" in one]
    assert [name for name, _ in left_out] == [
        "numbered",
        "worded",
        "listing",
        "hinted",
        "?",
        "?",
        "?",
        "?",
    ]
    assert (status.about["left_out"], status.error) == (8, "")
    return dict(left_out)


@contextmanager
def web_server(kind: str, port: int = 0) -> Iterator[str]:
    """The URL of the good server over HTTP, as a process that may die."""
    port = port or free_port()
    process = subprocess.Popen(
        [sys.executable, str(GOOD), kind, str(port)], stderr=subprocess.DEVNULL
    )
    try:
        until_time = time.monotonic() + PATIENCE
        while time.monotonic() < until_time:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/{'sse' if kind == 'sse' else 'mcp'}"
    finally:
        process.kill()
        process.wait()


class Office:
    """A provider with a database thread of its own, in a registry, as a process that serves has
    it."""

    process_id = "process-1"

    def __init__(self, reserved: tuple[str, ...] = ()) -> None:
        self._commit = GroupCommit()
        self.submit = self._commit.submit
        self.provider = McpToolProvider(self._desk, LOCAL, reserved)
        self.registry = ToolRegistry()
        self.registry.register_provider(self.provider)

    @property
    def _desk(self) -> DatabaseThread:
        return self

    async def reload(self) -> None:
        await self._commit.submit(self._obey)

    def _obey(self) -> None:
        self.provider.obey(load_server_settings(load_secrets()))
        self.provider.know(load_tool_settings().values())

    async def offers(self, *names: str) -> None:
        """Wait until exactly these tools are there."""
        async with asyncio.timeout(PATIENCE):
            while {spec.name for spec in await self.registry.list_tools()} != set(names):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def has(self, name: str) -> None:
        """Wait until this tool is there."""
        async with asyncio.timeout(PATIENCE):
            while not await self.registry.has_tool(name):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)

    async def answers(self, name: str, **arguments: Any) -> None:
        """Wait until a call succeeds."""
        async with asyncio.timeout(PATIENCE):
            while not (await self.call(name, **arguments)).success:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)

    def link(self, server_name: str) -> McpConnection | None:
        return next(
            (one for one in self.provider._links.values() if one.settings.name == server_name), None
        )

    async def call(self, name: str, **arguments: Any) -> ToolExecutionResult:
        """Call a tool for an owner: nobody has looked at any of them."""
        context = ToolExecutionContext(user_id="1", owners={"1"})
        return await self.registry.invoke(ToolInvocation(name, arguments), context)

    async def close(self) -> None:
        await self.registry.close()
        await self._commit.close()


@asynccontextmanager
async def office(
    *, is_started: bool = True, reserved: tuple[str, ...] = ()
) -> AsyncIterator[Office]:
    one = Office(reserved)
    await one.reload()
    if is_started:
        one.provider.start()
    try:
        yield one
    finally:
        await one.close()


in_database = sync_to_async
