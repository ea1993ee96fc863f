"""Messages that are answered together, recalled ones, and what a crash makes of them, on a real
server."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, held

ENDS = (
    "SELECT text, state, reason, run_id FROM agent_message WHERE direction = 'in' "
    "AND sender_id = ? ORDER BY id LIMIT 2"
)


@pytest.fixture(scope="module")
def merging(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server that awaits further words for a second."""
    with LiveServer(scripted_env(model_server)) as server:
        cockpit = Cockpit(server)
        cockpit.fill("/admin/agent/manners/add/", name="merge", merge_seconds="1")
        cockpit.close()
        yield server


async def test_what_follows_a_mention_is_answered_with_it_once(merging, model):
    model.script(["hello"])
    group, user = fresh_id(), fresh_id()
    async with client(merging) as bot:
        await bot.say_group(group, user, "one")
        await bot.say_group(group, user, "two", mention=False)
        await bot.say_group(group, fresh_id(), "not for the bot", mention=False)
        assert "hello" in spoken(await bot.next_action())
        await bot.no_action(group=group)
    first, second = merging.rows(ENDS, str(user))
    assert (first["state"], first["reason"]) == ("answered", "merged")
    assert (second["state"], second["reason"]) == ("answered", "follow_up")
    assert first["run_id"] == second["run_id"] is not None


async def test_a_mention_without_words_is_answered_with_the_next_words(merging, model):
    model.script(["hello"])
    group, user = fresh_id(), fresh_id()
    async with client(merging) as bot:
        await bot.say_group(group, user, [])
        await bot.say_group(group, user, "what time is it", mention=False)
        assert "hello" in spoken(await bot.next_action())
        await bot.no_action(group=group)
    assert "what time is it" in model.requests[-1].last_text


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["awaited", "asked"])
async def test_what_is_answered_together_survives_a_kill_and_is_answered_once(
    merging, model, moment
):
    """Checklist 111."""
    model.script([held("never heard")] * (moment == "asked") + ["hello"])
    account, user = fresh_id(), fresh_id()
    async with client(merging, account) as bot:
        for text in ("one", "two"):
            await bot.say_private(user, text)
        if moment == "asked":
            await model.wait_for_requests(1)
        query = "SELECT 1 FROM agent_message WHERE sender_id = ? AND text = 'two'"
        await merging.row(query, str(user))
        await asyncio.to_thread(merging.kill)
    await asyncio.to_thread(merging.start)
    async with client(merging, account) as bot:
        assert spoken(await bot.next_action()) == "hello"
        await bot.no_action(user=user)
    ends = merging.rows(ENDS, str(user))
    assert [(end["state"], end["reason"]) for end in ends] == [
        ("answered", "merged"),
        ("answered", "private"),
    ]


async def test_a_recalled_message_stops_its_run_and_the_next_one_is_answered(live, model):
    """Checklist 74."""
    model.script([held("never heard"), "hello"])
    user = fresh_id()
    async with client(live) as bot:
        event = await bot.say_private(user, "one")
        await model.wait_for_requests(1)
        for _ in range(2):
            await bot.tell(
                "notice",
                notice_type="friend_recall",
                user_id=user,
                message_id=event["message_id"],
            )
        query = "SELECT 1 FROM agent_message WHERE sender_id = ? AND reason = 'recalled'"
        await live.row(query, str(user))
        await bot.say_private(user, "two")
        assert spoken(await bot.next_action()) == "hello"
        await bot.no_action(user=user)
    first, second = live.rows(ENDS, str(user))
    assert (first["state"], second["state"]) == ("silent", "answered")
