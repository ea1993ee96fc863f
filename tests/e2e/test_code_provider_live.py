"""A provider that a developer registers in code: its tools are in the admin before anybody talks to
the bot."""

import asyncio
import sys
from collections.abc import Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel

_START = """
import sys, django
django.setup()
from agent.runtime import wiring
from tools.contract import ToolExecutionResult, ToolSpec

class Kites:
    provider_name, provider_type = "kites", "toys"

    async def list_tools(self, context=None):
        schema = {"type": "object", "properties": {"height": {"type": "integer"}}}
        return [ToolSpec(name="fly_kite", parameters_schema=schema)]

    async def invoke(self, invocation, context=None):
        return ToolExecutionResult("fly_kite", success=True, content="up")

    async def close(self):
        pass

usual = wiring.build_tool_registry

def registry(*arguments):
    made = usual(*arguments)
    made.register_provider(Kites())
    return made

wiring.build_tool_registry = registry
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


class KiteServer(LiveServer):
    def _command(self) -> list[str]:
        return [sys.executable, "-c", _START, "runserver", f"127.0.0.1:{self.port}", "--noreload"]


@pytest.fixture
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with KiteServer(scripted_env(model_server)) as server:
        yield server


async def test_its_tools_have_rows_that_the_operator_can_switch_off(
    live: LiveServer, model_server: ScriptedModel
):
    cockpit = Cockpit(live)
    async with client(live) as bot:  # the agent of a server starts with its first client
        row = await live.row("SELECT * FROM tools_toolconfig WHERE name = ?", "fly_kite")
        assert (row["provider_name"], row["enabled"]) == ("kites", 1)
        await asyncio.to_thread(cockpit.configure, "fly_kite", enabled=False)
        model_server.script(["hello"])
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "hello"
    assert "fly_kite" not in model_server.requests[-1].tool_names
    cockpit.close()
