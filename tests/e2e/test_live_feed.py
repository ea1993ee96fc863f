"""A page's WebSocket on the real server: it says what has changed, to those who may see it."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.cast import fresh_id
from tests.e2e.chat import client, verdict
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture
def cockpit(live):
    with contextlib.closing(Cockpit(live)) as cockpit:
        yield cockpit


def follow(live, cookie: str, origin: str = "") -> connect:
    return connect(
        f"{live.url.replace('http', 'ws')}/ws/admin/live",
        origin=Origin(origin or live.url),
        additional_headers={"Cookie": cookie},
        proxy=None,
    )


async def say(socket: ClientConnection, frame: object) -> Any:
    await socket.send(json.dumps(frame))
    return json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))


async def test_a_page_hears_of_a_message_in_its_chat(live, model, cockpit):
    model.script(["one", "two"])
    user = fresh_id()
    async with client(live) as bot, follow(live, cockpit.cookie) as socket:
        await bot.say_private(user, "hi")
        await bot.next_action()
        await verdict(live, user)
        row = await live.row("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(user))
        topic = f"session:{row['id']}"
        assert await say(socket, {"watch": [topic]}) == {"watching": [topic]}
        await bot.say_private(user, "again")
        assert json.loads(await asyncio.wait_for(socket.recv(), PATIENCE)) == {"changed": topic}
        await bot.next_action()


@pytest.mark.parametrize(
    "frame",
    [
        "",
        [],
        {"watch": "overview"},
        {"watch": ["chat:1"]},
        {"watch": ["overview"] * 21},
        "x" * 5000,
    ],
)
async def test_a_frame_that_makes_no_sense_is_answered_and_changes_nothing(live, cockpit, frame):
    async with follow(live, cockpit.cookie) as socket:
        assert "error" in await say(socket, frame)
        assert await say(socket, {"watch": ["overview"]}) == {"watching": ["overview"]}


async def test_what_is_not_there_is_left_out(live, cockpit):
    async with follow(live, cockpit.cookie) as socket:
        assert await say(socket, {"watch": ["session:999999999"]}) == {"watching": []}


async def test_strangers_and_other_sites_are_refused(live, cockpit):
    refused = [("", ""), (cockpit.cookie, "https://evil.example"), ("sessionid=made-up", "")]
    for cookie, origin in refused:
        with pytest.raises(InvalidStatus):
            await follow(live, cookie, origin).__aenter__()


async def test_who_signs_out_follows_nothing_more(live, cockpit):
    async with follow(live, cockpit.cookie) as socket:
        await say(socket, {"watch": ["overview"]})
        cockpit.sign_out()
        await socket.send(json.dumps({"watch": ["overview"]}))
        await asyncio.wait_for(socket.wait_closed(), PATIENCE)
        assert socket.close_code == 4401


async def test_a_user_has_a_bounded_number_of_connections(live, cockpit):
    async with contextlib.AsyncExitStack() as stack:
        opening = (stack.enter_async_context(follow(live, cockpit.cookie)) for _ in range(13))
        ends = await asyncio.gather(*opening, return_exceptions=True)
    # Those of other tests may not have ended yet.
    assert any(isinstance(end, InvalidStatus) for end in ends)
    assert sum(isinstance(end, ClientConnection) for end in ends) > 1
