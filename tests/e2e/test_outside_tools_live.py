"""One question in a group, answered by an MCP server, a plugin and an HTTP tool, set up and
switched in the admin meanwhile."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.weather import TOOLS, Group, Sources, settings, sky
from tests.file_server import FileServer
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow


@pytest.fixture
def server(model_server: ScriptedModel, tmp_path: Path) -> Iterator[LiveServer]:
    with LiveServer(scripted_env(model_server) | settings(tmp_path / "plugins")) as live:
        yield live


@pytest.fixture
def cockpit(server: LiveServer) -> Iterator[Cockpit]:
    operator = Cockpit(server)
    yield operator
    operator.close()


async def test_the_weather_comes_from_everywhere_and_each_source_is_switched_while_the_bot_talks(
    server: LiveServer, model: ScriptedModel, cockpit: Cockpit, file_server: FileServer
):
    sources = Sources(server, cockpit)
    await asyncio.to_thread(sources.set_up, sky(file_server))
    async with client(server) as bot:
        group = Group(bot, model)
        for source in TOOLS:
            await group.notices(sources, source)
