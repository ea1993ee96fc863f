"""Who is answered at all: friends, listed people and groups, and those who never are."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, tell
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import FakeOneBot, at, text
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel
from tests.security.limits import DEFAULTS, MANNERS, fill, heard, override, page, settled

OWNER, LISTED, BLOCKED, STRANGER = "7100001", "7100002", "7100003", "7100004"
OPEN, CLOSED, ELSE = 8_100_001, 8_100_002, 8_100_003


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with LiveServer(
        scripted_env(model_server) | DEFAULTS | {"PERSON_ANSWERS_PER_MINUTE": "0"}
    ) as running:
        yield running


@pytest.fixture
async def bot(server: LiveServer, model: ScriptedModel) -> AsyncIterator[FakeOneBot]:
    model.answer_with(lambda request: "fine")
    async with client(server) as connected:
        lists = {"listed_people": f"{LISTED}\n{BLOCKED}", "denied_people": f"，{BLOCKED} ；12"}
        await override(server, connected, owners=OWNER, **lists)
        for group, said in ((OPEN, "everybody"), (CLOSED, "nobody")):
            rule = {"account": str(connected.self_id), "chats": f"group:{group}", "answered": said}
            await fill(server, f"{MANNERS}add/", name=f"{group} {fresh_id()}", **rule)
        yield connected


async def outcome(
    server: LiveServer, bot: FakeOneBot, person: str, group: int | None, **fields: Any
) -> str:
    """What becomes of a message: ``answered``, or why it is not."""
    peer = group or person
    count = len(
        server.rows(
            "SELECT 1 FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id "
            "WHERE s.peer_id = ? AND m.direction = 'in'",
            str(peer),
        )
    )
    await tell(bot, [at(bot.self_id), text("hi")], user=person, group=group, **fields)
    row = (await settled(server, peer, count + 1))[-1]
    return str(row["state"] if row["state"] == "answered" else f"{row['state']} {row['reason']}")


FRIEND, TEMPORARY = {"sub_type": "friend"}, {"sub_type": "group", "group_id": ELSE}
YES, NO, NEVER = "answered", "silent not_listed", "silent blocked"


WHO: dict[str, list[tuple[str, int | None, dict[str, Any], str]]] = {
    "everybody": [
        (STRANGER, None, TEMPORARY, YES),
        (STRANGER, ELSE, {}, YES),
        (BLOCKED, None, FRIEND, NEVER),
        (BLOCKED, OPEN, {}, NEVER),
        (STRANGER, CLOSED, {}, NEVER),
        (LISTED, CLOSED, {}, NEVER),
        (OWNER, CLOSED, {}, NEVER),
    ],
    "friends": [
        (STRANGER, None, FRIEND, YES),
        (STRANGER, None, TEMPORARY, NO),
        (STRANGER, None, {"sub_type": "other"}, NO),
        (STRANGER, None, {}, YES),
        (STRANGER, ELSE, {}, NO),
        (STRANGER, OPEN, {}, YES),
        (LISTED, None, TEMPORARY, YES),
        (LISTED, ELSE, {}, YES),
        (OWNER, ELSE, {}, YES),
    ],
    "listed": [
        (STRANGER, None, FRIEND, NO),
        (STRANGER, OPEN, {}, YES),
        (LISTED, None, TEMPORARY, YES),
        (BLOCKED, OPEN, {}, NEVER),
        (OWNER, None, TEMPORARY, YES),
    ],
}


async def test_each_policy_answers_whom_it_names(server, bot):
    for policy, cases in WHO.items():
        await override(server, bot, answered=policy)
        found = [await outcome(server, bot, *case[:2], **case[2]) for case in cases]
        assert found == [case[3] for case in cases], policy
        said = await heard(bot)
        assert len(said) == found.count(YES)  # who is not answered is told nothing


async def test_what_is_not_answered_is_kept_and_can_be_filtered(server, bot):
    words = f"kept {fresh_id()}"
    await tell(bot, words, user=BLOCKED)
    await server.row(
        "SELECT 1 FROM agent_message WHERE text = ? AND reason = 'blocked' AND state = 'silent'",
        words,
    )
    shown = await page(server, "/admin/agent/message/?reason__exact=blocked")
    assert words in shown


@pytest.mark.may_block("the page is asked here")
async def test_what_is_no_id_is_refused_at_its_field(server, bot):
    row = await server.row("SELECT id FROM agent_manners WHERE name = ?", str(bot.self_id))
    wrong = {
        "denied_people": "张三 <script>",
        "person_per_minute": "-1",
        "person_per_day": "99999999999999999999",
    }
    cockpit = Cockpit(server)
    shown = cockpit.refused(f"{MANNERS}{row['id']}/change/", **wrong)
    cockpit.close()
    assert set(re.findall(r'<ul class="errorlist" id="id_(\w+)_error">', shown)) == set(wrong)
