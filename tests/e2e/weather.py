"""The weather from three sources outside: an MCP server, a plugin and an HTTP tool, set up as an
operator does it."""

import asyncio
import json
import sys
from pathlib import Path

from tests.cast import fresh_id
from tests.e2e.cockpit import Cockpit
from tests.environment import PROJECT
from tests.fake_onebot import FakeOneBot, at, spoken, text
from tests.file_server import FileServer, sends
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call

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


TOOLS = {"mcp": "mcp_weather", "plugin": "plugin_weather", "http": "http_weather"}
ANSWERS = {"mcp": '"celsius"', "plugin": "says the plugin", "http": "clear"}


def settings(folder: Path) -> dict[str, str]:
    """The environment that a server needs for all of them; the plugin is put into ``folder``."""
    (folder / "weather").mkdir(parents=True)
    for name, content in PLUGIN.items():
        (folder / "weather" / name).write_text(content, encoding="utf-8")
    return {
        "PLUGINS_DIR": str(folder),
        "MCP_ALLOWED_COMMANDS": sys.executable,
        "FETCH_ALLOW": "127.0.0.1",
    }


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
        self.set_up_http(weather_url)
        self.switch("plugin", on=True)
        self._cockpit.look_at(TOOLS["mcp"], TOOLS["plugin"])

    def set_up_http(self, weather_url: str) -> None:
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

    def switch(self, source: str, *, on: bool) -> None:
        table = {"mcp": "mcpserver", "plugin": "plugin", "http": "httptool"}[source]
        (row,) = self._server.rows(f"SELECT id FROM tools_{table}")
        self._cockpit.fill(f"/admin/tools/{table}/{row['id']}/change/", enabled=on)


class Group:
    """A group in which somebody asks for the weather."""

    def __init__(self, bot: FakeOneBot, model: ScriptedModel) -> None:
        self._bot, self._model, self._group = bot, model, fresh_id()

    async def told(self, source: str) -> str:
        """What the model is told when it asks ``source`` for somebody in the group."""
        self._model.script([call(TOOLS[source], city="Oslo"), "There you are."])
        await self._bot.say_group(
            self._group, fresh_id(), [at(self._bot.self_id), text("weather?")]
        )
        assert spoken(await self._bot.next_action()).strip() == "There you are."
        return str(self._model.requests[-1].messages[-1]["content"])

    async def hears_from(self, source: str) -> None:
        """Ask until it answers: a server has to be started, and a plugin to be loaded."""
        async with asyncio.timeout(30):
            while ANSWERS[source] not in await self.told(source):
                pass

    async def notices(self, sources: Sources, source: str) -> None:
        """Switched off, it is gone with the next message; switched on, it comes back."""
        await self.hears_from(source)
        await asyncio.to_thread(sources.switch, source, on=False)
        assert (await self.told(source)).startswith(f"Tool not found: {TOOLS[source]}")
        await asyncio.to_thread(sources.switch, source, on=True)
        await self.hears_from(source)


def sky(file_server: FileServer) -> str:
    """A service of the web, and where it answers for a city whose name follows."""
    answer = sends(b'{"now": {"sky": "clear"}}', "application/json")
    return file_server.serve("/weather/Oslo", answer).removesuffix("Oslo")
