"""One question in a group, answered by an MCP server, a plugin and an HTTP tool, set up and switched in the admin meanwhile."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.environment import PROJECT
from tests.fake_onebot import at, spoken, text
from tests.file_server import FileServer, sends
from tests.live_server import LiveServer
from tests.scripted_model import call

MCP_SERVER = PROJECT / "tests" / "tools" / "mcp" / "good_server.py"
PLUGIN = {
    "_manifest.json": json.dumps(
        {
            "manifest_version": 2,
            "id": "tests.weather",
            "version": "1.0.0",
            "name": "Weather",
            "description": "The weather",
            "author": {"name": "tests"},
            "license": "MIT",
            "capabilities": [],
            "tools": [{"name": "plugin_weather", "description": "The weather"}],
        }
    ),
    "plugin.py": """
from tools.plugin_sdk import Plugin, Tool


class Weather(Plugin):
    @Tool("plugin_weather", description="The weather")
    async def weather(self, city: str) -> str:
        return f"{city}: rain, says the plugin"


def create_plugin() -> Plugin:
    return Weather()
""",
}
CITY = {"name": "city", "kind": "string", "required": True}
ADDITIONS = {"mcp": "/admin/tools/mcpserver/add/", "http": "/admin/tools/httptool/add/"}


@pytest.fixture
def server(model_server: Any, tmp_path: Path) -> Iterator[LiveServer]:
    folder = tmp_path / "plugins" / "weather"
    folder.mkdir(parents=True)
    for name, content in PLUGIN.items():
        (folder / name).write_text(content, encoding="utf-8")
    env = {"PLUGINS_DIR": str(folder.parent), "MCP_ALLOWED_COMMANDS": sys.executable, "FETCH_ALLOW": "127.0.0.1"}
    with LiveServer(scripted_env(model_server) | env) as live:
        yield live


@pytest.fixture
def cockpit(server: LiveServer) -> Iterator[Cockpit]:
    operator = Cockpit(server)
    yield operator
    operator.close()


class Sources:
    """Where the weather comes from, as the operator sets it up and switches it."""

    def __init__(self, server: LiveServer, cockpit: Cockpit) -> None:
        self._server = server
        self._cockpit = cockpit

    def set_up(self, weather_url: str) -> None:
        self._cockpit.fill(
            ADDITIONS["mcp"],
            name="weather station",
            transport="stdio",
            command=sys.executable,
            arguments=f"{MCP_SERVER}\nstdio",
            include="weather",
            name_prefix="mcp_",
            enabled=True,
        )
        self._cockpit.fill(
            ADDITIONS["http"],
            name="http_weather",
            description="The weather",
            url=f"{weather_url}{{city}}",
            answer_kind="jsonpath",
            answer_path="$.now.sky",
            enabled=True,
            **{f"parameters_schema-row-0-{name}": value for name, value in CITY.items()},
        )
        self.switch("plugin", on=True)

    def switch(self, source: str, *, on: bool) -> None:
        table = {"mcp": "mcpserver", "plugin": "plugin", "http": "httptool"}[source]
        (row,) = self._server.rows(f"SELECT id FROM tools_{table}")
        self._cockpit.fill(f"/admin/tools/{table}/{row['id']}/change/", enabled=on)


TOOLS = {"mcp": "mcp_weather", "plugin": "plugin_weather", "http": "http_weather"}
ANSWERS = {"mcp": '"celsius"', "plugin": "says the plugin", "http": "clear"}


async def test_the_weather_comes_from_everywhere_and_each_source_is_switched_while_the_bot_talks(
    server: LiveServer, model: Any, cockpit: Cockpit, file_server: FileServer
):
    sources = Sources(server, cockpit)
    sky = file_server.serve("/weather/Oslo", sends(b'{"now": {"sky": "clear"}}', "application/json"))
    await asyncio.to_thread(sources.set_up, sky.removesuffix("Oslo"))
    group = fresh_id()
    async with client(server) as bot:

        async def told(source: str) -> str:
            """What the model is told when it asks ``source`` for somebody in the group."""
            model.script([call(TOOLS[source], city="Oslo"), "There you are."])
            await bot.say_group(group, fresh_id(), [at(bot.self_id), text("weather?")])
            assert spoken(await bot.next_action()).strip() == "There you are."
            return str(model.requests[-1].messages[-1]["content"])

        async def comes(source: str) -> None:
            """Ask until it is there: a server has to be started, and a plugin to be loaded."""
            async with asyncio.timeout(30):
                while ANSWERS[source] not in await told(source):
                    pass

        for source in TOOLS:
            await comes(source)
            await asyncio.to_thread(sources.switch, source, on=False)
            assert (await told(source)).startswith(f"Tool not found: {TOOLS[source]}")
            await asyncio.to_thread(sources.switch, source, on=True)
            await comes(source)
