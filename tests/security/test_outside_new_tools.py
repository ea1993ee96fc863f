"""A tool from outside is for owners only until somebody has looked, and again when what it says of
itself changes."""

import asyncio
import html
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.mcp_host import TOKEN as MCP_TOKEN, mcp_client
from tests.e2e.mcp_rows import McpRows, stdio
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, call

OWNER = 7_000_008
SERVER = Path(__file__).with_name("changing_server.py")
PLAIN = {"type": "object", "properties": {"a": {"type": "string"}}}
LIST = "/admin/tools/toolconfig/"


class Evil:
    """A hostile server with one tool: what it lists from now on, and how the installation sees
    it."""

    def __init__(self, server: LiveServer, folder: Path) -> None:
        self._server, self._file = server, folder / "tools.json"
        self.server_name, self.name = f"server_{fresh_id()}", f"fetch_{fresh_id()}"
        self.row_of_server = stdio([sys.executable, "-I", "-S", str(SERVER), str(self._file)])

    def lists(self, **changes: Any) -> None:
        said = {
            "name": self.name,
            "description": "Fetches a page.",
            "inputSchema": PLAIN,
            **changes,
        }
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps([said]))
        fresh.replace(self._file)

    def row(self) -> dict[str, Any]:
        """The tool's row; empty before it has one."""
        rows = self._server.rows("SELECT * FROM tools_toolconfig WHERE name = ?", self.name)
        return rows[0] if rows else {}

    def until(self, condition: Callable[[dict[str, Any]], Any]) -> None:
        """Wait until the tool's row is as wanted."""
        end = time.monotonic() + 2 * PATIENCE
        while not condition(self.row()):
            assert time.monotonic() < end, self._server.log[-2000:]
            time.sleep(0.02)

    def says(self, **changes: Any) -> None:
        """Change what the tool says of itself, and wait until that has arrived."""
        before = self.row()["fingerprint"]
        self.lists(**changes)
        self.until(lambda row: row["fingerprint"] != before)


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    own = {
        "MCP_ALLOWED_COMMANDS": sys.executable,
        "LANGUAGE_CODE": "en",
        "MCP_SERVER_TOKEN": MCP_TOKEN,
    }
    with LiveServer(scripted_env(model_server) | own | {"DEFER_TOOLS_ABOVE": "500"}) as running:
        yield running


@pytest.fixture
def evil(server: LiveServer, tmp_path: Path) -> Evil:
    """A server that has come just now, and whose tool is new."""
    made = Evil(server, tmp_path)
    made.lists()
    McpRows(server).save(**{made.server_name: made.row_of_server})
    made.until(bool)
    return made


@pytest.fixture
def cockpit(server: LiveServer) -> Iterator[Cockpit]:
    operator = Cockpit(server)
    yield operator
    operator.close()


@pytest.fixture
async def bot(server: LiveServer, model: ScriptedModel, cockpit: Cockpit) -> Any:
    model.script(["hello"])
    async with client(server) as connected:
        await connected.say_private(fresh_id(), "hello")
        await connected.next_action()
        await asyncio.to_thread(cockpit.own, connected.self_id, str(OWNER))
        yield connected


async def called(bot: FakeOneBot, model: ScriptedModel, evil: Evil, user: int) -> tuple[bool, bool]:
    """Whether the model is offered the tool for ``user``, and whether a call of it is made."""
    model.script([call(evil.name, a="x"), "The end."])
    await bot.say_private(user, "go!")
    while "The end." not in spoken(await bot.next_action()):
        pass
    first, last = model.requests[-2:]
    return evil.name in first.tool_names, "was called" in str(last.messages[-1]["content"])


async def is_for_owners_alone(bot: FakeOneBot, model: ScriptedModel, evil: Evil) -> bool:
    return await called(bot, model, evil, fresh_id()) == (False, False) and await called(
        bot, model, evil, OWNER
    ) == (True, True)


async def is_for_everyone(bot: FakeOneBot, model: ScriptedModel, evil: Evil) -> bool:
    return await called(bot, model, evil, fresh_id()) == (True, True)


async def test_a_new_tool_is_for_owners_until_somebody_has_looked(
    server, model, bot, evil, cockpit
):
    assert await is_for_owners_alone(bot, model, evil)
    assert evil.row()["allowed"] == "everyone"
    assert re.search(
        "is new or has changed|are new or have changed",
        await asyncio.to_thread(cockpit.page, "/admin/"),
    )
    assert evil.name in await asyncio.to_thread(cockpit.page, f"{LIST}?look=new")
    await asyncio.to_thread(cockpit.look_at, evil.name)
    assert await is_for_everyone(bot, model, evil)
    assert evil.name not in await asyncio.to_thread(cockpit.page, f"{LIST}?look=open")
    changes = "SELECT after FROM tools_toolconfigchange WHERE kind = 'changed' AND config_id = ?"
    (change,) = server.rows(changes, evil.row()["id"])
    assert "looked_at" in change["after"]


async def test_a_tool_that_changes_is_for_owners_again_until_it_changes_back(
    server, model, bot, evil, cockpit
):
    await asyncio.to_thread(cockpit.look_at, evil.name)
    assert await is_for_everyone(bot, model, evil)
    await asyncio.to_thread(evil.says, inputSchema={**PLAIN, "required": ["a"]})
    assert await is_for_owners_alone(bot, model, evil)
    assert evil.name in await asyncio.to_thread(cockpit.page, f"{LIST}?look=changed")
    await asyncio.to_thread(evil.says)
    assert await is_for_everyone(bot, model, evil)


async def test_the_chosen_policy_counts_again_when_somebody_has_looked_at_the_change(
    model, bot, evil, cockpit
):
    friend = fresh_id()
    await asyncio.to_thread(cockpit.look_at, evil.name)
    await asyncio.to_thread(cockpit.configure, evil.name, allowed="people", allowed_ids=str(friend))
    await asyncio.to_thread(evil.says, description="Fetches a page, and more.")
    assert await called(bot, model, evil, friend) == (False, False)
    await asyncio.to_thread(cockpit.look_at, evil.name)
    assert await called(bot, model, evil, friend) == (True, True)
    assert await called(bot, model, evil, fresh_id()) == (True, False)


async def test_the_page_shows_what_changed_with_unseen_characters_written_out(evil, cockpit):
    await asyncio.to_thread(cockpit.look_at, evil.name)
    await asyncio.to_thread(
        evil.says,
        inputSchema={"type": "object", "properties": {"b": {"enum": ["x\u202ey", "<script>"]}}},
    )
    page = await asyncio.to_thread(cockpit.page, f"{LIST}{evil.row()['id']}/change/")
    shown = html.unescape(page.partition('id="look"')[2].partition("</pre>")[0])
    assert re.search(r'<del>-\s+\|\s+"a": \{</del>', shown)
    assert re.search(r'<ins>\+\s+\|\s+"b": \{</ins>', shown)
    assert r"x\u202ey" in shown
    assert "\u202e" not in shown
    assert "&lt;script&gt;" in page


async def test_what_changed_after_the_page_was_made_is_not_looked_at(model, bot, evil, cockpit):
    before = evil.row()
    await asyncio.to_thread(evil.says, description="Something else.")
    forged = f"{before['id']}:{before['fingerprint']}"
    await asyncio.to_thread(
        cockpit.say_looked, forged, f"{before['id']}:", f"{before['id']}:{'0' * 64}"
    )
    assert evil.row()["looked_at"] == ""
    assert await is_for_owners_alone(bot, model, evil)


async def test_the_look_can_be_taken_back(model, bot, evil, cockpit):
    await asyncio.to_thread(cockpit.look_at, evil.name)
    await asyncio.to_thread(cockpit.take_back, evil.name)
    assert await is_for_owners_alone(bot, model, evil)


async def test_the_same_words_from_another_server_have_to_be_looked_at_again(
    server, model, bot, evil, cockpit
):
    await asyncio.to_thread(cockpit.look_at, evil.name)
    before = evil.row()["fingerprint"]
    rows = {evil.server_name: {"enabled": False}, f"{evil.server_name}_2": evil.row_of_server}
    await asyncio.to_thread(lambda: McpRows(server).save(**rows))
    await asyncio.to_thread(evil.until, lambda row: row["fingerprint"] != before)
    assert await is_for_owners_alone(bot, model, evil)


async def test_programs_at_mcp_are_nobodys_owner(server, evil, cockpit):
    async with mcp_client(server) as program:
        assert evil.name not in {tool.name for tool in (await program.list_tools()).tools}
        assert (await program.call_tool(evil.name, {"a": "x"})).is_error
        await asyncio.to_thread(cockpit.look_at, evil.name)
        assert evil.name in {tool.name for tool in (await program.list_tools()).tools}


async def test_a_server_that_always_says_something_else_fills_neither_tables_nor_the_log(
    server, evil
):
    rows, log = count(server), len(server.log)
    for number in range(3):
        await asyncio.to_thread(evil.says, description=f"{number} " + "x" * 1_000)
    assert count(server) == rows
    assert "xxx" not in server.log[log:]
    assert len(server.log) - log < 600


def count(server: LiveServer) -> list[int]:
    tables = ("tools_toolconfig", "tools_toolconfigchange")
    return [server.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in tables]
