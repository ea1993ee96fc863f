"""A well-behaved MCP server of the official library:
``python good_server.py stdio|http|sse [PORT]``."""

import asyncio
import base64
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

DOT = base64.b64encode(b"\x89PNG").decode()
server = MCPServer("good", version="1.5", log_level="CRITICAL")


class Weather(BaseModel):
    city: str
    celsius: float


@server.tool(annotations=ToolAnnotations(read_only_hint=True, title="Weather"))
def weather(city: str, days: int = 1) -> Weather:
    """The weather of a city."""
    return Weather(city=city, celsius=20 + days)


@server.tool()
def say(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool(structured_output=False)
def everything() -> list[
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
]:
    """One of each."""
    return [
        TextContent(type="text", text="words"),
        ImageContent(type="image", data=DOT, mime_type="image/png"),
        AudioContent(type="audio", data=DOT, mime_type="audio/wav"),
        ResourceLink(type="resource_link", uri="file:///a", name="a", mime_type="text/plain"),
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(uri="memo://b", text="inside", mime_type="text/plain"),
        ),
        EmbeddedResource(
            type="resource",
            resource=BlobResourceContents(uri="memo://c", blob=DOT, mime_type="image/png"),
        ),
    ]


@server.tool(annotations=ToolAnnotations(destructive_hint=True, read_only_hint=False))
def wipe() -> str:
    """Delete all."""
    return "wiped"


@server.tool()
async def slow(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "done"


@server.tool()
async def steps(context: Context) -> str:
    """Report how far it is."""
    await context.report_progress(1, 3, "one")
    await asyncio.sleep(0.05)
    return "there"


@server.tool()
async def ask(context: Context) -> str:
    """Ask the user."""
    answer = await context.elicit("Which?", Weather)
    return answer.action


@server.tool()
async def grow(context: Context) -> str:
    """Add a tool while connected."""
    server.add_tool(late, name="late", description="Came later.")
    await context.notify_tools_changed()  # newer sessions
    await context.session.send_tool_list_changed()  # older ones
    return "grown"


@server.tool()
async def shrink(context: Context) -> str:
    """Take it away again."""
    server.remove_tool("late")
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()
    return "shrunk"


@server.tool()
async def needs_input(context: Context) -> str:
    """Want something from the user before it goes on, as newer servers do."""
    question = ElicitRequestFormParams(
        message="Which?", requested_schema={"type": "object", "properties": {}}
    )
    return InputRequiredResult(input_requests={"q": ElicitRequest(params=question)})  # type: ignore[return-value]


@server.tool()
async def continues(context: Context) -> str:
    """Want to be asked again, once."""
    if context.request_state is None:
        return InputRequiredResult(request_state="half")  # type: ignore[return-value]
    return "finished"


def late() -> str:
    return "late"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def die_once(mark: str) -> str:
    """Kill the server at the first call."""
    if not Path(mark).exists():
        Path(mark).write_text("x")
        os._exit(3)
    return "alive"


@server.tool()
def die() -> str:
    """Kill the server."""
    os._exit(3)


@server.tool()
def environment() -> str:
    """The names of all variables."""
    return " ".join(sorted(os.environ))


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "stdio":
        server.run("stdio")
    else:
        server.run(
            "sse" if kind == "sse" else "streamable-http", host="127.0.0.1", port=int(rest[0])
        )
