"""Plugins of a real server: called by a model for a group, switched while the bot talks, and gone
with the server."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import Call, calls
from tests.tools.plugins.hosting import gone, plugin

WEATHER = """
import os
from tools.plugin_sdk import Tool

@Tool
def plugin_weather(city: str) -> str:
    return f"{city}: sunny, by {os.getpid()}"
"""
PATIENCE = 30

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="descendants are found through /proc"
)


@pytest.fixture
def server(start_server: Any, tmp_path: Path) -> LiveServer:
    plugin(tmp_path, "weather", WEATHER)
    started: LiveServer = start_server(PLUGINS_DIR=str(tmp_path))
    return started


def switch(server: LiveServer, *, enabled: bool) -> None:
    """What saving the row in the admin does."""
    with sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=10) as database:
        database.execute("UPDATE tools_plugin SET enabled = ?", (enabled,))
        database.execute("UPDATE tools_configversion SET number = number + 1 WHERE id = 1")


async def switched_on(server: LiveServer) -> int:
    """The process that the plugin runs in, once its tool is there."""
    await server.row(
        "SELECT 1 FROM tools_plugin WHERE plugin_id = 'test.weather'", timeout=PATIENCE
    )
    switch(server, enabled=True)
    cockpit = await asyncio.to_thread(Cockpit, server)
    await asyncio.to_thread(cockpit.look_at, "plugin_weather")
    cockpit.close()
    row = await server.row(
        "SELECT runner_pid FROM tools_pluginstatus WHERE state = 'running'", timeout=PATIENCE
    )
    return int(row["runner_pid"])


async def told(server: LiveServer, model: Any) -> str:
    """What the model is told when it calls the plugin's tool for a group."""
    model.script([calls(Call("plugin_weather", {"city": "北京"})), "the end"])
    async with client(server) as bot:
        await bot.say_group(fresh_id(), fresh_id(), "weather?")
        assert "the end" in spoken(await bot.next_action())
    return str(model.requests[-1].messages[-1]["content"])


async def test_a_model_calls_a_plugin_that_is_switched_on_and_off_while_the_bot_talks(
    server, model
):
    await switched_on(server)
    assert "北京: sunny, by " in await told(server, model)
    switch(server, enabled=False)
    assert "插件 test.weather 已被管理员停用" in await told(server, model)


@pytest.mark.parametrize("end", [LiveServer.kill, LiveServer.terminate])
async def test_nothing_of_a_plugin_outlives_the_server(server, model, end):
    runner = await switched_on(server)
    assert (await told(server, model)).endswith(f"by {runner}")
    await asyncio.to_thread(end, server)
    assert await gone(runner)
