"""``send_message`` to another chat: only where the tool's row lists that chat, and for whom."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, outgoing
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.live_server import LiveServer
from tests.scripted_model import Call, calls

ALLOWED, FRIEND = fresh_id(), fresh_id()


@pytest.fixture
def listed(live: LiveServer) -> Iterator[int]:
    """A group that the row lists for one person."""
    group = fresh_id()
    cockpit = Cockpit(live)
    before = cockpit.configure("send_message", other_chats=f"group:{group} {ALLOWED}")
    yield group
    cockpit.configure("send_message", **before)


def to_group(group: int, *items: dict[str, Any]) -> Call:
    said = [{"type": "plain", "text": "told you"}, *items]
    return Call("send_message", {"messages": said, "session": f"onebot:group:{group}"})


async def test_a_listed_chat_gets_it_and_both_records_have_it(live, model, listed):
    model.script([calls(to_group(listed)), "done"])
    async with client(live) as bot:
        await bot.say_private(ALLOWED, "tell them")
        action = await bot.next_action()
        assert (action["params"]["group_id"], spoken(action)) == (listed, "told you")
        assert spoken(await bot.next_action()) == "done"
    there = await outgoing(live, listed)
    assert (there["state"], there["text"], there["in_history"]) == ("delivered", "told you", 1)
    run = await live.row("SELECT session_id FROM agent_run WHERE id = ?", there["run_id"])
    assert run["session_id"] != there["session_id"]


@pytest.mark.parametrize("who", [FRIEND, 0])
async def test_a_chat_or_a_person_that_is_not_listed_is_refused(live, model, listed, who):
    group = listed if who else fresh_id()
    model.script([calls(to_group(group)), "sorry"])
    async with client(live) as bot:
        await bot.say_private(who or ALLOWED, "tell them")
        assert spoken(await bot.next_action()) == "sorry"
        await bot.no_action(group=group, user=fresh_id())
