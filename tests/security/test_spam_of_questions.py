"""Whoever has calls made that need approval cannot have the owners' phones ring without end."""

import asyncio
from collections.abc import Iterator

import pytest

from agent.record.waiting.approvals import CHAT_LIMIT, MENTIONING
from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, put_notes_aside
from tests.e2e.cockpit import Cockpit
from tests.e2e.later_server import LaterServer
from tests.fake_onebot import at, spoken
from tests.scripted_model import ScriptedModel, call

OWNER = 7_000_001


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LaterServer]:
    with LaterServer(scripted_env(model_server)) as running:
        yield running


async def test_owners_are_mentioned_a_few_times_and_then_asked_quietly_and_then_not_at_all(
    server, model
):
    group, user = fresh_id(), fresh_id()
    mentioned, questions = [], 0
    async with client(server) as bot:
        model.script(["hello"])
        await bot.say_private(user, "hello")
        await bot.next_action()
        cockpit = await asyncio.to_thread(Cockpit, server)
        await asyncio.to_thread(cockpit.own, bot.self_id, str(OWNER))
        cockpit.close()
        notes = put_notes_aside(bot, OWNER)
        for amount in range(CHAT_LIMIT + 1):
            model.script([call("transfer", amount=amount, to="me"), "done"])
            await bot.say_group(group, user, "transfer!")
            while "done" not in spoken(action := await bot.next_action()):
                questions += 1
                mentioned.append(at(OWNER) in action["params"]["message"])
    assert len(notes) <= MENTIONING
    assert mentioned == [True] * MENTIONING + [False] * (CHAT_LIMIT - MENTIONING)
    assert questions == CHAT_LIMIT
    assert "过几分钟再试" in model.requests[-1].last_text
