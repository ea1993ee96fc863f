"""The prompt of a real server: filled in for each chat, obeying the admin's page from the next
message on."""

import asyncio
import json
from collections.abc import Iterator

import pytest
import requests

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel

ACCOUNT = fresh_id()
PROMPT = (
    "You are {bot_name}, in {chat_kind}. Topic: { topic }. Ask {tool:get_weather}{tool:gone?}. "
    'Say {"mood": {mood?}}.'
)


@pytest.fixture(scope="module")
def actor(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server whose prompt has placeholders."""
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "MODEL_NAME": "scripted",
        "BOT_NAME": "Frosty",
        "SYSTEM_PROMPT": PROMPT,
    }
    with LiveServer(env | {"ONEBOT_ACCESS_TOKEN": TOKEN, "HTTP_API_TOKEN": TOKEN}) as server:
        yield server


@pytest.fixture(scope="module")
def cockpit(actor: LiveServer) -> Iterator[Cockpit]:
    """An administrator of that server."""
    browser = Cockpit(actor)
    yield browser
    browser.close()


async def prompt_for(server: LiveServer, model: ScriptedModel, user: int) -> tuple[str, list[str]]:
    """What the model is told first in the chat with ``user``, and the notes of the run."""
    model.reset()
    model.script(["fine"])
    async with client(server, ACCOUNT) as bot:
        await bot.say_private(user, "hi")
        await bot.next_action()
    row = await server.row(
        "SELECT r.notes FROM agent_run r JOIN agent_chatsession s ON s.id = r.session_id"
        " WHERE s.peer_id = ? AND r.state = 'finished' AND r.id = (SELECT max(id) FROM "
        "agent_run WHERE session_id = s.id)",
        str(user),
    )
    return model.requests[0].messages[0]["content"], json.loads(row["notes"])


async def test_values_stand_in_the_prompt_and_what_has_none_is_noted(actor, model):
    prompt, (note,) = await prompt_for(actor, model, fresh_id())
    assert prompt == 'You are Frosty, in 私聊. Topic: { topic }. Ask get_weather. Say {"mood": }.'
    assert note.endswith("\n{ topic }")


async def test_what_the_admin_writes_counts_in_that_chat_from_the_next_message_on(
    actor, model, cockpit
):
    user, other = fresh_id(), fresh_id()
    await prompt_for(actor, model, user)
    (chat,) = actor.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(user))
    state = {"topic": "茶 {bot_name}", "mood": True, "bot_name": "Sir Frost"}
    await asyncio.to_thread(cockpit.set_state, chat["id"], state)
    prompt, notes = await prompt_for(actor, model, user)
    assert (
        prompt
        == 'You are Sir Frost, in 私聊. Topic: 茶 {bot_name}. Ask get_weather. Say {"mood": true}.'
    )
    assert notes == []
    assert "Topic: { topic }" in (await prompt_for(actor, model, other))[0]


async def test_a_tool_that_is_switched_off_is_not_named_and_noted(actor, model, cockpit):
    before = await asyncio.to_thread(cockpit.configure, "get_weather", enabled=0)
    prompt, (note,) = await prompt_for(actor, model, fresh_id())
    await asyncio.to_thread(cockpit.configure, "get_weather", **before)
    assert "Ask {tool:get_weather}." in prompt
    assert note.endswith("\n{ topic }, {tool:get_weather}")


async def test_a_question_over_http_has_the_prompt_filled_in_too(actor, model):
    model.script(["fine"])
    headers = {"Authorization": f"Bearer {TOKEN}"}
    ask = asyncio.to_thread(
        requests.post,
        f"{actor.url}/agent/query",
        json={"input": "hi"},
        headers=headers,
        timeout=PATIENCE,
    )
    assert (await ask).json()["result"] == "fine"
    prompt = model.requests[0].messages[0]["content"]
    assert (
        prompt
        == 'You are Frosty, in {chat_kind}. Topic: { topic }. Ask get_weather. Say {"mood": }.'
    )
    (row,) = actor.rows("SELECT notes FROM agent_run WHERE origin = 'http'")
    assert json.loads(row["notes"])[0].endswith("\n{chat_kind}, { topic }")


async def test_the_run_page_says_the_note_in_the_readers_language(actor, model, cockpit):
    await prompt_for(actor, model, fresh_id())
    (run,) = actor.rows("SELECT max(id) AS id FROM agent_run WHERE origin = 'chat'")
    page = await asyncio.to_thread(cockpit.page, f"/admin/agent/run/{run['id']}/change/")
    assert "{ topic }</li>" in page
    assert "Placeholders of the prompt" not in page
