"""PostgreSQL connections that end right at a COMMIT: the answer to it is lost, whether it took
effect or not."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.cast import fresh_id
from tests.commit_cutter import CommitCutter
from tests.conftest import scripted_env
from tests.e2e.brisk import BriskServer
from tests.e2e.chat import client
from tests.fake_onebot import FakeOneBot, spoken
from tests.scripted_model import Answer, Request, ScriptedModel, call, held, says

pytestmark = pytest.mark.slow

#: What is said to the database at each moment of one message's life, in their order: before the
#: final answer, and at it.
EARLY = [
    "INSERT INTO agent_message",
    "INSERT INTO agent_run",
    "INSERT INTO agent_step",
    "UPDATE agent_toolcall",
]
LATE = ["INSERT INTO agent_message", "UPDATE agent_run", "UPDATE agent_message"]
ROWS = (
    "SELECT m.direction, m.text, m.state, m.claimed_by FROM agent_message m JOIN "
    "agent_chatsession s ON s.id = m.session_id "
    "WHERE s.peer_id = ? ORDER BY m.id"
)
CALLS = (
    "SELECT run.state AS run, c.state AS call FROM agent_run run JOIN agent_message m ON m.id "
    "= run.message_id "
    "LEFT JOIN agent_toolcall c ON c.run_id = run.id JOIN agent_chatsession s ON s.id = "
    "m.session_id WHERE s.peer_id = ?"
)


def story(request: Request) -> Answer:
    """A tool first; the answer then, when it is let out."""
    return (
        held(says("sunny"))
        if request.messages[-1]["role"] == "tool"
        else call("get_weather", city="Oslo")
    )


@pytest.fixture
async def cutter(postgres_server) -> AsyncIterator[CommitCutter]:
    async with CommitCutter(postgres_server.socket_folder) as cutter:
        yield cutter


@pytest.fixture
async def server(
    cutter: CommitCutter, migrated_url: str, model_server: ScriptedModel
) -> AsyncIterator[BriskServer]:
    """A server whose every word to the database passes the cutter, but not what the test looks
    up."""
    server = BriskServer(scripted_env(model_server) | {"DATABASE_URL": migrated_url})
    server.env["DATABASE_URL"] = cutter.through(migrated_url)
    await asyncio.to_thread(server.start)
    server.env["DATABASE_URL"] = migrated_url
    yield server
    await asyncio.to_thread(server.remove)


async def is_answered_once(server: BriskServer, bot: FakeOneBot, user: int) -> None:
    assert spoken(await bot.next_action()) == "sunny"
    await server.row(
        "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(user)
    )
    found = await asyncio.to_thread(server.rows, ROWS, str(user))
    assert [(row["direction"], row["state"]) for row in found] == [
        ("in", "answered"),
        ("out", "delivered"),
    ]
    assert await asyncio.to_thread(server.rows, CALLS, str(user)) == [
        {"run": "finished", "call": "succeeded"}
    ]
    await bot.no_action(user=user)


@pytest.mark.parametrize("place", ["before", "behind"])
async def test_each_message_is_answered_once_whichever_of_its_commits_is_cut(
    cutter, server, model, place
):
    model.answer_with(story)
    async with client(server) as bot:
        for count, moment in enumerate(EARLY):
            user = fresh_id()
            cutter.want(place, moment)
            await bot.say_private(user, "weather?")
            await cutter.is_cut()
            await model.wait_for_requests(2 * count + 2)
            model.release()
            await is_answered_once(server, bot, user)
        for count, moment in enumerate(LATE, start=len(EARLY)):
            user = fresh_id()
            await bot.say_private(user, "weather?")
            await model.wait_for_requests(2 * count + 2)
            cutter.want(place, moment)
            model.release()
            await cutter.is_cut()
            await is_answered_once(server, bot, user)
    assert len(model.requests) == 2 * len(EARLY + LATE)
