"""What an operator says in rows of manners, obeyed from the next message on."""

from collections.abc import Iterator

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, tell, verdict
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import at, spoken, text
from tests.live_server import LiveServer

MANNERS = "/admin/agent/manners/"


@pytest.fixture
def cockpit(live: LiveServer) -> Iterator[Cockpit]:
    made = Cockpit(live)
    yield made
    made.close()


def row(live: LiveServer, name: str) -> str:
    (found,) = live.rows("SELECT id FROM agent_manners WHERE name = ?", name)
    return f"{MANNERS}{found['id']}/change/"


async def test_a_row_silences_a_group_and_says_so_until_it_is_switched_off(live, model, cockpit):
    account, group = fresh_id(), fresh_id()
    name = f"calm {group}"
    async with client(live, account) as bot:
        place = {"account": str(account), "chats": f"group:{group}"}
        cockpit.fill(f"{MANNERS}add/", name=name, silenced=True, **place)
        await tell(bot, [at(account), text(" hi")], user=fresh_id(), group=group)
        assert await verdict(live, group) == ("silent", "silenced")
        await bot.no_action(user=fresh_id())
        assert name in cockpit.page("/admin/agent/message/?reason__exact=silenced")
        model.script(["here I am"])
        cockpit.fill(row(live, name), silenced=False)
        await tell(bot, [at(account), text(" hi")], user=fresh_id(), group=group)
        assert spoken(await bot.next_action()).strip() == "here I am"


async def test_a_prefix_of_a_row_wakes_the_bot_in_its_chats_alone(live, model, cockpit):
    account, group, other = fresh_id(), fresh_id(), fresh_id()
    async with client(live, account) as bot:
        place = {"account": str(account), "chats": f"group:{group}"}
        cockpit.fill(f"{MANNERS}add/", name=f"prefix {group}", wake_prefixes="#", **place)
        model.script(["yes?"])
        await tell(bot, "#hi", user=fresh_id(), group=other)
        await tell(bot, "#hi", user=fresh_id(), group=group)
        assert spoken(await bot.next_action()).strip() == "yes?"
        assert await verdict(live, group) == ("answered", "prefix")
        assert await verdict(live, other) == ("recorded", "not_addressed")


async def test_the_button_of_a_chat_silences_it_and_a_denied_person_is_not_answered(
    live, model, cockpit
):
    account, user, other = fresh_id(), fresh_id(), fresh_id()
    model.answer_with(lambda _request: "hello")
    async with client(live, account) as bot:
        await bot.say_private(user, "hi")
        await bot.next_action()
        found = await live.row("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(user))
        chat = f"/admin/agent/chatsession/{found['id']}"
        cockpit.press(f"{chat}/act/silence/", "silence", page=f"{chat}/change/")
        await bot.say_private(user, "hi?")
        await live.row(
            "SELECT id FROM agent_message WHERE sender_id = ? AND state = 'silent' "
            "AND reason = 'silenced'",
            str(user),
        )
        denied = {"account": str(account), "denied_people": str(other)}
        cockpit.fill(f"{MANNERS}add/", name=f"denied {other}", **denied)
        await bot.say_private(other, "hi")
        assert await verdict(live, other) == ("silent", "blocked")
        await bot.no_action(user=fresh_id())
