"""What a plugin may do in a chat, as the operator decides it on the plugin's page: nothing, until
it is granted."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call
from tests.tools.plugins.hosting import becomes, plugin

SECRET = "swordfish-17"
CAPABILITIES = ["send.text", "history.read", "llm.generate", "storage"]
SOURCE = f"""
from tools.plugin_sdk import CapabilityError, Plugin, Tool

class Busy(Plugin):
    @Tool
    async def busy(self) -> str:
        \"\"\"Does everything.\"\"\"
        said = [one["text"] for one in await self.ctx.history(5)]
        told = await self.ctx.llm.generate("sum it up")
        sent = await self.ctx.send.text(f"half way: {{told}}")
        await self.ctx.storage.set("count", (await self.ctx.storage.get("count") or 0) + 1)
        return f"{{said}}; {{sent}}; {{await self.ctx.storage.get('count')}}"

    @Tool
    async def reach(self, session: str) -> str:
        \"\"\"Tries to speak elsewhere.\"\"\"
        refused = []
        for name in ("session_id", "stream_id", "group_id", "user_id"):
            try:
                await self.ctx.ask("send.text", text="psst", **{{name: session}})
            except CapabilityError as error:
                refused.append(error.code)
        return " ".join(refused)

    @Tool
    def knows(self) -> str:
        \"\"\"Whether it knows the word.\"\"\"
        return f"{{self.config.get('word') == '{SECRET}'}} {{self.config['times']}}"
"""
SCHEMA = {
    "type": "object",
    "required": ["word"],
    "properties": {
        "word": {"type": "string", "format": "password"},
        "times": {"type": "integer", "default": 3, "maximum": 9},
    },
}


class Operator:
    """Somebody at the page of the one plugin of ``server``."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.cockpit = Cockpit(server)

    async def decide(self, **changes: object) -> None:
        """Save the page with ``changes``, and wait until the plugin runs, in its newest edition."""
        row = await self.server.row("SELECT id FROM tools_plugin WHERE folder = 'busy'")
        self.path = f"/admin/tools/plugin/{row['id']}/change/"
        await asyncio.to_thread(lambda: self.cockpit.fill(self.path, enabled=True, **changes))
        await self.server.row("SELECT id FROM tools_pluginstatus WHERE state = 'running'")

    async def page(self) -> str:
        return await asyncio.to_thread(self.cockpit.page, self.path)


@pytest.fixture(scope="module")
def operator(
    model_server: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    root = tmp_path_factory.mktemp("plugins")
    plugin(root, "busy", SOURCE, capabilities=CAPABILITIES, config_schema=SCHEMA)
    with LiveServer(scripted_env(model_server) | {"PLUGINS_DIR": str(root)}) as server:
        operator = Operator(server)
        asyncio.run(operator.decide(**{"config-word": SECRET}))
        operator.cockpit.look_at("busy", "reach", "knows")
        yield operator
        operator.cockpit.close()


async def test_what_is_granted_is_done_in_the_chat_of_the_call_and_nothing_before(operator, model):
    await operator.decide(granted=[], **{"config-word": SECRET})
    group, other = fresh_id(), fresh_id()
    async with client(operator.server) as bot:
        await bot.say_group(other, fresh_id(), "elsewhere", mention=False)
        await bot.say_group(group, fresh_id(), "it rains", mention=False)
        model.script([call("busy"), "sorry"])
        await bot.say_group(group, fresh_id(), "do it")
        assert spoken(await bot.next_action()).strip() == "sorry"
        assert "history.read is not granted" in model.requests[-1].messages[-1]["content"]

        await operator.decide(granted=CAPABILITIES)
        model.script([call("busy"), "rain", "done"])
        await bot.say_group(group, fresh_id(), "again")
        said = [await bot.next_action(), await bot.next_action()]
    assert [(spoken(one).strip(), one["params"]["group_id"]) for one in said] == [
        ("half way: rain", group),
        ("done", group),
    ]
    result = model.requests[-1].messages[-1]["content"]
    assert "it rains" in result
    assert "elsewhere" not in result
    assert result.endswith("消息已发送; 1")
    assert "half way" not in model.requests[-2].last_text
    (inner,) = operator.server.rows("SELECT final_text FROM agent_run WHERE origin = 'agent'")
    assert inner["final_text"] == "rain"
    assert "count" in await operator.page()


async def test_no_address_that_a_plugin_gives_leads_anywhere(operator, model):
    await operator.decide(granted=CAPABILITIES, **{"config-word": SECRET})
    async with client(operator.server) as bot:
        model.script([call("reach", session=str(fresh_id())), "the end"])
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "the end"
    assert model.requests[-1].messages[-1]["content"] == " ".join(["E_BAD_PAYLOAD"] * 4)


async def test_a_secret_of_the_configuration_reaches_the_plugin_and_no_page(operator, model):
    async with client(operator.server) as bot:

        async def is_known() -> bool:
            model.script([call("knows"), "the end"])
            await bot.say_private(fresh_id(), "hi")
            assert spoken(await bot.next_action()) == "the end"
            return bool(model.requests[-1].messages[-1]["content"] == "True 7")

        await operator.decide(**{"config-word": SECRET, "config-times": "7"})
        await becomes(is_known)
    assert SECRET not in await operator.page()
    (row,) = operator.server.rows("SELECT config FROM tools_plugin")
    assert SECRET not in row["config"]
