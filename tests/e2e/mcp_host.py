"""A server whose tools other programs call over ``/mcp``, and such a program."""

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.odd_server import PICTURE
from tests.live_server import HURRIED, LiveServer

TOKEN = "mcp-t0k"

_START = '''
import asyncio, sys, django
django.setup()
from pathlib import Path
from typing import Any
from agent.runtime import wiring
from tools.contract import (
    ToolAnnotation, ToolContentItem, ToolExecutionContext, ToolExecutionResult
)
from tools.functions.function_tool import tool

FOLDER, PICTURE = Path(sys.argv.pop(1)), sys.argv.pop(1)
HINTS = ToolAnnotation(read_only=True, destructive=False, idempotent=True, open_world=False)

@tool(title="The painter", annotation=HINTS)
def paint() -> ToolExecutionResult:
    """Paint a picture."""
    items = [ToolContentItem("image", data=PICTURE, mime_type="image/png"),
             ToolContentItem("audio", data="AAAA", mime_type="audio/wav"),
             ToolContentItem("resource_link", uri="https://example.org/", name="more"),
             ToolContentItem("resource", uri="note://1", text="a note", mime_type="text/plain"),
             ToolContentItem("binary", data="AAAA", mime_type="application/zip")]
    return ToolExecutionResult("paint", success=True, content="Painted.", content_items=items)

@tool
def measure() -> dict[str, int]:
    """Measure."""
    return {"宽": 3}

@tool
def recite(length: int) -> str:
    """Recite."""
    return "霜" * length

@tool(output_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
def count() -> dict[str, Any]:
    """Count."""
    return {"n": 1}

@tool
def tear() -> str:
    """Break."""
    raise RuntimeError("it tore")

@tool(requires_approval=True)
def transfer(amount: int) -> str:
    """Transfer money."""
    (FOLDER / "transferred").touch()
    return "done"

@tool
async def linger(name: str) -> str:
    """Take until the file is there."""
    (FOLDER / f"{name}.begun").touch()
    try:
        while not (FOLDER / f"{name}.done").exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        (FOLDER / f"{name}.stopped").touch()
        raise
    return f"{name} lingered"

@tool
def whoami(context: ToolExecutionContext) -> str:
    """Tell who asks."""
    return f"{context.platform}/{context.user_id}/{context.session_id}"

wiring.SAMPLE_TOOLS += (paint, measure, recite, count, tear, transfer, linger, whoami)
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
'''


class McpHost(LiveServer):
    """The real server with ``/mcp`` switched on and those tools beside its samples; requests have
    half a second to end."""

    limits = HURRIED

    def _command(self) -> list[str]:
        fixed = [sys.executable, "-c", _START, str(self.folder), PICTURE]
        return [*fixed, "runserver", f"127.0.0.1:{self.port}", "--noreload"]

    def has(self, name: str) -> bool:
        """Whether a tool has left the file ``name``."""
        return (self.folder / name).exists()

    def touch(self, name: str) -> None:
        """Let a tool go on that waits for the file ``name``."""
        (self.folder / name).touch()


@contextlib.asynccontextmanager
async def mcp_client(
    server: LiveServer, mode: str = "auto", token: str = TOKEN, **options: Any
) -> AsyncIterator[Client]:
    """The SDK's own client at ``/mcp``."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=20) as http,
        Client(
            streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode, **options
        ) as client,
    ):
        yield client
