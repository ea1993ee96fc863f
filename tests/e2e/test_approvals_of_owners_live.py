"""Questions that reach the owners where they are, and their answers by a quote."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.later_server import LaterServer
from tests.fake_onebot import FakeOneBot, Frame, ok, spoken, text
from tests.scripted_model import ScriptedModel, call

#: As official bots give them.
OWNER = "A1B2C3D4E5F60718293A4B5C6D7E8F90"


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LaterServer]:
    with LaterServer(scripted_env(model_server)) as server:
        yield server


@pytest.fixture
async def bot(live: LaterServer, model: ScriptedModel) -> Any:
    """A client whose account belongs to ``OWNER``; it gives each message the echo as its id."""
    model.script(["hello"])
    async with client(live) as connected:
        connected.answer_with(lambda action: ok({"message_id": action["echo"]}))
        await connected.say_private(fresh_id(), "hello")
        await connected.next_action()
        cockpit = await asyncio.to_thread(Cockpit, live)
        await asyncio.to_thread(cockpit.own, connected.self_id, OWNER)
        cockpit.close()
        yield connected


async def asked(
    live: LaterServer, bot: FakeOneBot, model: ScriptedModel, group: int, to: str
) -> dict[str, Frame]:
    """What is sent when somebody of ``group`` wants a transfer, by the chat; of the group the
    question alone."""
    model.script([call("transfer", amount=5, to=to), "I asked."])
    await bot.say_group(group, fresh_id(), "secret words, transfer!")
    found: dict[str, Frame] = {}
    for _ in range(3):  # the answer is one of them
        action = await bot.next_action()
        if "需要机器人主人批准" in spoken(action):
            found["group" if "group_id" in action["params"] else "private"] = action
    assert set(found) == {"group", "private"}
    for action in found.values():  # nobody quotes a message in the moment that it is confirmed
        await live.row("SELECT 1 FROM agent_message WHERE message_id = ?", action["echo"])
    return found


def spoken_words(action: Frame) -> str:
    return spoken(action).strip() if "message" in action["params"] else ""


def quoting(action: Frame, words: str) -> list[dict[str, Any]]:
    return [{"type": "reply", "data": {"id": action["echo"]}}, text(words)]


async def made(live: LaterServer, bot: FakeOneBot, model: ScriptedModel, to: str) -> None:
    """Wait for both answers to an approval, and look whether the transfer was made."""
    said = {spoken_words(await bot.next_action()) for _ in range(2)}
    assert "Done." in said
    assert f"5 {to}" in live.lines("transfers")


async def test_owners_who_are_not_in_the_group_are_asked_in_private_and_quote_the_question(
    live, model, bot
):
    group, to = fresh_id(), str(fresh_id())
    question = (await asked(live, bot, model, group, to))["private"]
    words = spoken(question)
    assert question["params"]["user_id"] == OWNER
    assert str(group) in words
    assert f'to = "{to}"' in words
    assert "secret" not in words
    model.script(["Done."])
    await bot.say_private(OWNER, quoting(question, "批准"))
    await made(live, bot, model, to)


async def test_in_the_group_a_quote_with_a_word_is_enough_and_nobody_else_can(live, model, bot):
    group, to = fresh_id(), str(fresh_id())
    question = (await asked(live, bot, model, group, to))["group"]
    await bot.say_group(group, fresh_id(), quoting(question, "批准"), mention=False)
    assert "只有机器人主人" in spoken(await bot.next_action())
    model.script(["Done."])
    await bot.say_group(group, OWNER, quoting(question, " 同意"), mention=False)
    await made(live, bot, model, to)


async def test_full_width_digits_are_digits(live, model, bot):
    to = str(fresh_id())
    question = (await asked(live, bot, model, fresh_id(), to))["private"]
    found = re.search(r"编号 (\d{6})", spoken(question))
    assert found
    model.script(["Done."])
    wide = found[1].translate({ord(str(digit)): chr(0xFF10 + digit) for digit in range(10)})
    await bot.say_private(OWNER, f"批准{wide}")
    await made(live, bot, model, to)


async def test_an_owner_who_speaks_in_the_group_is_asked_there_alone(live, model, bot):
    group = fresh_id()
    await bot.say_group(group, OWNER, "I am here", mention=False)
    model.script([call("transfer", amount=5, to=str(fresh_id())), "I asked."])
    await bot.say_group(group, fresh_id(), "transfer!")
    for _ in range(2):
        assert (await bot.next_action())["params"]["group_id"] == group
    await bot.no_action(user=OWNER)


async def test_a_quote_of_something_else_with_the_word_is_an_ordinary_message(live, model, bot):
    to = str(fresh_id())
    await asked(live, bot, model, fresh_id(), to)
    model.script(["hello", "what do you mean?"])
    await bot.say_private(OWNER, "hi")
    answer = await bot.next_action()
    await bot.say_private(OWNER, quoting(answer, "批准"))
    assert spoken(await bot.next_action()) == "what do you mean?"
    assert f"5 {to}" not in live.lines("transfers")
