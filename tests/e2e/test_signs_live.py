"""Signs that the bot is at work: only where a row says so, and never in the way of the answer."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from onebot.gateway.signs import SHOW_SECONDS
from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, ok
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel

TYPING, LIKE, REACT = "set_input_status", "set_msg_emoji_like", "set_group_reaction"


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server whose rows have every sign shown."""
    with LiveServer(scripted_env(model_server)) as server:
        cockpit = Cockpit(server)
        cockpit.fill("/admin/agent/manners/add/", name="signs", typing="true", reaction="76")
        cockpit.close()
        yield server


def able(bot: FakeOneBot) -> None:
    """Have the client know every action."""
    bot.answer_with(
        lambda action: ok(None) if action["action"].startswith("set_") else bot.usual_answer(action)
    )


async def actions(bot: FakeOneBot, count: int) -> dict[str, list[dict[str, Any]]]:
    """The parameters of the next actions, by their names."""
    heard: dict[str, list[dict[str, Any]]] = {}
    for _ in range(count):
        action = await bot.next_action()
        heard.setdefault(action["action"], []).append(action["params"])
    return heard


async def test_a_private_chat_shows_that_the_bot_types(live, model):
    model.script(["hello"])
    user = fresh_id()
    async with client(live) as bot:
        able(bot)
        await bot.say_private(user, "hi")
        heard = await actions(bot, 2)
    assert heard[TYPING] == [{"user_id": user, "event_type": 1}]
    assert "send_private_msg" in heard


@pytest.mark.parametrize("agent", ["OneBot/11", "Lagrange.OneBot/1"])
async def test_a_message_in_a_group_bears_a_reaction_while_it_is_answered(live, model, agent):
    model.script(["hello"])
    group = fresh_id()
    async with client(live, headers={"User-Agent": agent}) as bot:
        able(bot)
        said = await bot.say_group(group, fresh_id(), "hi")
        heard = await actions(bot, 3)
    number = {"message_id": said["message_id"]}
    if agent == "OneBot/11":
        like = {**number, "emoji_id": "76"}
        assert heard[LIKE] == [{**like, "set": True}, {**like, "set": False}]
    else:
        reaction = {"group_id": group, **number, "code": "76"}
        assert heard[REACT] == [{**reaction, "is_add": True}, {**reaction, "is_add": False}]


async def test_what_a_client_does_not_know_is_not_asked_of_it_again(live, model):
    """Checklist 92."""
    model.script(["one", "two", "three"])
    account, user = fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await bot.say_private(user, "hi")
        assert set(await actions(bot, 2)) == {TYPING, "send_private_msg"}
        await bot.say_private(user, "hi")
        await bot.next_action()
        assert [one["action"] for one in bot.actions].count(TYPING) == 1
    async with client(live, account) as bot:
        await bot.say_private(user, "hi")
        assert set(await actions(bot, 2)) == {TYPING, "send_private_msg"}


async def test_a_client_that_never_answers_a_sign_holds_up_no_answer(live, model):
    model.answer_with(lambda _request: "one")
    async with client(live) as bot:
        bot.answer_with(
            lambda action: None if action["action"] == LIKE else bot.usual_answer(action)
        )
        for _ in range(5):  # a busy machine may hold one up
            begun = time.monotonic()
            await bot.say_group(fresh_id(), fresh_id(), "hi")
            assert set(await actions(bot, 2)) == {LIKE, "send_group_msg"}
            if time.monotonic() - begun < SHOW_SECONDS:
                return
    pytest.fail("every answer came after the time of its sign")
