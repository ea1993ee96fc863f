"""Accounts of official bots: their bridges call them by another name, and take mentions off."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, spoken, text

OPENID = "A1B2C3D4E5F60718293A4B5C6D7E8F90"


@pytest.fixture
def cockpit(live) -> Iterator[Cockpit]:
    cockpit = Cockpit(live)
    yield cockpit
    cockpit.close()


def bridge(live, account, name, **options) -> FakeOneBot:
    return FakeOneBot(live.ws_url, account, token=TOKEN, headers={"X-Self-ID": name}, **options)


async def rows_of(live, *names: object) -> list[tuple[str, str]]:
    found = live.rows(
        "SELECT self_id, second_name FROM onebot_bot WHERE self_id IN (?, ?) OR second_name = ?",
        *map(str, (*names, names[-1])),
    )
    return [(row["self_id"], row["second_name"]) for row in found]


async def test_an_account_is_known_by_its_id_and_found_by_its_name(live, model):
    model.script(["hello", "again"])
    account, name = fresh_id(), f"my_bot.{fresh_id()}"
    async with bridge(live, account, name) as bot:
        await bot.say_private(OPENID, "hi")
        action = await bot.next_action()
        assert (spoken(action), action["params"]["user_id"]) == ("hello", OPENID)
        await live.row("SELECT 1 FROM onebot_bot WHERE second_name = ? AND online", name)
    await live.row("SELECT 1 FROM onebot_bot WHERE second_name = ? AND NOT online", name)
    async with bridge(live, account, name, greet=False) as bot:
        await live.row("SELECT 1 FROM onebot_bot WHERE second_name = ? AND online", name)
        await bot.say_private(OPENID, "hi")
        assert spoken(await bot.next_action()) == "again"
    assert await rows_of(live, account, name) == [(str(account), name)]


async def test_a_number_that_is_not_the_accounts_leaves_no_row_behind(live, model):
    model.script(["hello"])
    account, name = fresh_id(), fresh_id()
    async with bridge(live, account, str(name)) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "hello"
        await live.row("SELECT 1 FROM onebot_bot WHERE second_name = ? AND online", str(name))
    assert await rows_of(live, account, name) == [(str(account), str(name))]


async def test_a_socket_for_actions_follows_the_name_of_that_for_events(live, model):
    model.script(["hello"])
    account, name = fresh_id(), f"my-bot-{fresh_id()}"
    async with (
        bridge(live, account, name, role="Api", greet=False) as actions,
        bridge(live, account, name, role="Event") as events,
    ):
        await events.say_private(fresh_id(), "hi")
        assert spoken(await actions.next_action()) == "hello"


async def test_two_bridges_of_one_name_do_not_end_each_others_connections(live, model):
    model.script(["one", "two"])
    one, two, name = fresh_id(), fresh_id(), f"my_bot{fresh_id()}"
    async with bridge(live, one, name):
        await live.row("SELECT 1 FROM onebot_bot WHERE self_id = ? AND online", str(one))
        async with bridge(live, two, name) as second:
            await live.row("SELECT 1 FROM onebot_bot WHERE self_id = ? AND online", str(two))
            async with bridge(live, one, name) as first:
                for bot, words in ((first, "one"), (second, "two")):
                    await bot.say_private(fresh_id(), "hi")
                    assert spoken(await bot.next_action()) == words


async def test_every_message_of_a_group_is_for_the_account_where_its_row_says_so(
    live, model, cockpit
):
    model.script(["I heard"])
    account, group = fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await live.row("SELECT 1 FROM onebot_bot WHERE self_id = ?", str(account))
        await bot.say_group(group, fresh_id(), [text("to nobody")], mention=False)
        await bot.no_action()
        await asyncio.to_thread(cockpit.set_bot, account, all_for_me="on")
        await bot.say_group(group, fresh_id(), [text("to nobody")], mention=False)
        assert "I heard" in spoken(await bot.next_action())
