"""Commands on a real server: while an answer is under way, about messages of other chats, by
people who may not give them, and across a kill."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, outgoing, tell, verdict
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, ok, spoken, text
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, held

OWNER = 7_000_002


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with LiveServer(scripted_env(model_server) | {"LANGUAGE_CODE": "en"}) as server:
        yield server


@pytest.fixture
async def bot(live: LiveServer, model: ScriptedModel) -> AsyncIterator[FakeOneBot]:
    """A client whose account belongs to ``OWNER``."""
    async with client(live) as connected:
        await connected.say_private(fresh_id(), "/help")
        await connected.next_action()
        cockpit = await asyncio.to_thread(Cockpit, live)
        await asyncio.to_thread(cockpit.own, connected.self_id, str(OWNER))
        row = {"name": connected.self_id, "enabled": "on", "command_prefix": "/"}
        await asyncio.to_thread(
            cockpit.save, "/admin/agent/manners/add/", row | {"account": connected.self_id}
        )
        cockpit.close()
        yield connected


def quote(message_id: int | str) -> dict[str, Any]:
    return {"type": "reply", "data": {"id": str(message_id)}}


async def test_stop_ends_the_answer_under_way_and_is_answered_at_once(live, model, bot):
    model.script([held("far too late"), "next"])
    group, person = fresh_id(), fresh_id()
    await bot.say_group(group, person, "tell me everything")
    await model.wait_for_requests(1)
    await bot.say_group(group, person, "/stop")
    assert "Stopped." in spoken(await bot.next_action())
    model.release()
    row = await live.row(
        "SELECT reason, state FROM agent_message WHERE text = 'tell me everything' "
        "AND state NOT IN ('waiting', 'running')"
    )
    assert row == {"reason": "stopped", "state": "silent"}
    await bot.say_group(group, person, "and now?")
    assert "next" in spoken(await bot.next_action())
    said = [one["content"] for one in model.requests[-1].messages]
    assert not any("/stop" in words or "Stopped" in words for words in said)


async def test_why_explains_answers_and_silence_here_and_nothing_of_elsewhere(live, model, bot):
    model.script(["hello"])
    group, elsewhere, person = fresh_id(), fresh_id(), fresh_id()
    bot.answer_with(lambda _action: ok({"message_id": -group}))
    event = await bot.say_group(group, person, "hi")
    await bot.next_action()
    await outgoing(live, group)
    bot.answer_again()
    for message_id in (event["message_id"], -group):
        await tell(bot, [quote(message_id), text("/why")], user=person, group=group)
        assert "Answered: the bot was mentioned." in (told := spoken(await bot.next_action()))
        assert "/admin/" not in told
    await tell(bot, [quote(-group), text("/why")], user=OWNER, group=elsewhere)
    assert "not known here" in spoken(await bot.next_action())
    await tell(bot, "/off", user=OWNER, group=group)
    await bot.next_action()
    event = await bot.say_group(group, person, "anybody?")
    await live.row("SELECT id FROM agent_message WHERE text = 'anybody?' AND reason = 'silenced'")
    await tell(bot, [quote(event["message_id"]), text("/why")], user=OWNER, group=group)
    told = spoken(await bot.next_action())
    assert f"“group:{group} ({bot.self_id})”" in told


async def test_a_member_orders_nothing_that_is_the_owners(live, model, bot):
    group, person = fresh_id(), fresh_id()
    await tell(bot, "/off", user=person, group=group)
    assert await verdict(live, group) == ("silent", "command")
    await bot.no_action(group=group)
    await bot.say_private(person, "/off")
    assert "Only owners" in spoken(await bot.next_action())


async def test_an_order_that_was_carried_out_before_a_kill_is_not_repeated(live, model, bot):
    group, person = fresh_id(), fresh_id()
    bot.stay_silent()
    await tell(bot, f"/deny {person}", user=OWNER, group=group)
    await bot.next_action()
    live.kill()
    live.start()
    async with client(live, int(bot.self_id)) as again:
        assert await verdict(live, group) == ("answered", "command")
        await again.no_action()
    (made,) = live.rows(
        "SELECT count(*) AS n FROM tools_toolconfigchange WHERE after LIKE ?", f"%{person}%"
    )
    assert made["n"] == 1
    answer = await outgoing(live, group)
    assert (answer["state"], answer["in_history"]) == ("unknown", 0)
