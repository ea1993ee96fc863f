"""Personas on a real server: chosen for one group they answer there with the next message, and
deleting one while it answers loses nothing."""

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, held


def change(server: LiveServer, sql: str, *values: Any) -> None:
    """Change the server's database as another process would."""
    path = server.data_dir / "frostagent.sqlite3"
    with closing(sqlite3.connect(path, timeout=10)) as database:
        database.execute("PRAGMA foreign_keys = ON")
        database.execute(sql, values)
        database.execute("UPDATE tools_configversion SET number = number + 1 WHERE id = 1")
        database.commit()


def choose_persona(server: LiveServer, group: int) -> None:
    """By the admin's pages: a persona of its own for one group."""
    cockpit = Cockpit(server)
    place = {"places-0-chat_kind": "group", "places-0-peer_id": str(group)}
    form = {"name": "sage", "enabled": "on", "kind": "persona", "tool_choice": "only"}
    form |= {"tools": "get_weather", "prompt": "You are the sage.", "model_calls": "3"}
    form |= {"mention": "unknown", "quote": "unknown", **place}
    form |= {"choices-TOTAL_FORMS": "0", "choices-INITIAL_FORMS": "0"}
    form |= {"places-TOTAL_FORMS": "1", "places-INITIAL_FORMS": "0"}
    cockpit.save("/admin/agent/persona/add/", form)
    cockpit.close()


@pytest.mark.slow
async def test_a_persona_answers_in_its_group_and_deleting_it_meanwhile_loses_nothing(
    start_server: Any, model: ScriptedModel
):
    server = start_server(UPSTREAM_ENDPOINT=model.url, MODEL_NAME="m", SYSTEM_PROMPT="You are I.")
    group, other, user = fresh_id(), fresh_id(), fresh_id()
    model.script(["one", "two", "three", held("four"), "five"])
    async with client(server) as bot:

        async def ask(where: int) -> str:
            await bot.say_group(where, user, "hi")
            return spoken(await bot.next_action())

        assert "one" in await ask(group)
        await asyncio.to_thread(choose_persona, server, group)
        assert "two" in await ask(group)
        assert "three" in await ask(other)
        await bot.say_group(group, user, "hi")
        await model.wait_for_requests(4)
        await asyncio.to_thread(change, server, "DELETE FROM agent_personachoice")
        await asyncio.to_thread(change, server, "DELETE FROM agent_persona WHERE name = 'sage'")
        model.release()
        assert "four" in spoken(await bot.next_action())
        assert "five" in await ask(group)
    prompts = [str(request.messages[0]["content"]) for request in model.requests]
    assert [prompt.startswith("You are the sage.") for prompt in prompts] == [
        *(False, True, False, True, False)
    ]
    assert model.requests[1].tool_names == ["get_weather"]
    runs = server.rows("SELECT persona, state FROM agent_run ORDER BY id")
    assert [run["persona"] for run in runs] == ["default", "sage", "default", "sage", "default"]
    assert {run["state"] for run in runs[:-1]} == {"finished"}
