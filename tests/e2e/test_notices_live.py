"""What clients report besides messages stands on the page of its chat, and nothing is answered."""

import re

import pytest
import requests

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, Frame, spoken
from tests.live_server import LiveServer

LINES = (
    "SELECT e.* FROM agent_chatevent e JOIN agent_chatsession s ON s.id = e.session_id "
    "WHERE s.peer_id = ? ORDER BY e.id"
)
SESSION = "SELECT id FROM agent_chatsession WHERE peer_id = ?"
#: Frames of section 4.3 of the reference, each with what its line says.
TOLD: list[tuple[Frame, str]] = [
    ({"notice_type": "notify", "sub_type": "poke", "target_id": "bot"}, "Ann ({user}) poked bot"),
    ({"notice_type": "group_increase", "sub_type": "invite", "operator_id": 0}, "by invitation"),
    (
        {"notice_type": "group_decrease", "sub_type": "kick", "operator_id": 20009},
        "was removed from the group · by 20009",
    ),
    (
        {"notice_type": "group_ban", "sub_type": "ban", "user_id": 0, "duration": -1},
        "everybody was muted",
    ),
    (
        {"notice_type": "group_ban", "sub_type": "lift_ban", "user_id": 0, "duration": 0},
        "everybody may speak again",
    ),
    ({"notice_type": "group_ban", "sub_type": "ban", "duration": 3600}, "was muted for 1 hour"),
    (
        {"notice_type": "group_recall", "operator_id": 20009, "message_id": 1287653344},
        "a message of Ann ({user}) was taken back · by 20009",
    ),
    (
        {"notice_type": "group_upload", "file": {"id": "/x-y-z", "name": "a.pdf", "size": 1}},
        "uploaded the file “a.pdf”",
    ),
    (
        {
            "notice_type": "group_msg_emoji_like",
            "message_id": 1,
            "likes": [{"emoji_id": "76", "count": 1}],
            "is_add": True,
        },
        "reacted to a message with [赞]",
    ),
    (
        {"notice_type": "reaction", "sub_type": "remove", "message_id": -5, "code": "76"},
        "took the reaction [赞] back",
    ),
    ({"notice_type": "notify", "sub_type": "title", "title": "<b>King</b>"}, "“<b>King</b>”"),
    ({"notice_type": "group_card", "card_new": "A\u202eB"}, "is called “AB” here now"),
    ({"notice_type": "group_admin", "sub_type": "unset"}, "is no administrator any more"),
]


def in_english(server: LiveServer, path: str) -> str:
    headers = {"Cookie": Cockpit(server).cookie, "Accept-Language": "en"}
    return requests.get(server.url + path, headers=headers, timeout=PATIENCE).text


def shown(server: LiveServer, peer: int) -> list[str]:
    """The lines on the page of the chat with ``peer``, without their times."""
    (session,) = server.rows(SESSION, str(peer))
    page = in_english(server, f"/admin/agent/chatsession/{session['id']}/change/")
    found = re.findall(r'data-event="\d+">.*?</time> (.*?)</li>', page)
    plain = [re.sub("<[^>]+>", "", one) for one in found]
    return [one.replace("\xa0", " ").replace("&lt;", "<").replace("&gt;", ">") for one in plain]


async def notice(bot: FakeOneBot, group: int, user: int, **fields: object) -> None:
    await bot.tell("notice", **{"group_id": group, "user_id": user, **fields})


async def test_76_every_notice_is_a_line_of_its_chat_and_wakes_nobody(live, model):
    group, user = fresh_id(), fresh_id()
    async with client(live) as bot:
        await bot.say_group(group, user, "hi", mention=False, sender={"nickname": "Ann"})
        for frame, _words in TOLD:
            if frame.get("target_id") == "bot":
                frame = {**frame, "target_id": bot.self_id}
            await notice(bot, group, user, **frame)
        await bot.no_action(group=group)
    lines = shown(live, group)
    assert len(lines) == len(TOLD)
    for line, (_frame, words) in zip(lines, TOLD, strict=True):
        assert words.format(user=user) in line


async def test_a_group_of_which_nothing_is_known_yet_has_a_page_with_its_first_notice(live, model):
    """Notices out of order: who leaves had never joined."""
    group, user = fresh_id(), fresh_id()
    async with client(live) as bot:
        await notice(bot, group, user, notice_type="group_decrease", sub_type="leave")
        await notice(bot, group, user, notice_type="group_increase", sub_type="approve")
        await live.row(f"{LINES} LIMIT 1 OFFSET 1", str(group))
    assert shown(live, group) == [f"{user} left", f"{user} joined"]


async def test_74_a_recall_that_comes_twice_is_one_line(live, model):
    group, user = fresh_id(), fresh_id()
    async with client(live) as bot:
        event = await bot.say_group(group, user, "hi", mention=False)
        for _ in range(2):
            about = {"operator_id": user, "message_id": event["message_id"]}
            await notice(bot, group, user, notice_type="group_recall", **about)
        await bot.no_action(group=group)
    assert len(live.rows(LINES, str(group))) == 1


async def test_77_a_file_and_its_upload_are_handled_once(live, model):
    """The file is a message, and answered as one; its upload is a line alone."""
    model.script(["thanks"])
    group, user = fresh_id(), fresh_id()
    async with client(live) as bot:
        await notice(
            bot, group, user, notice_type="group_upload", file={"id": "/x", "name": "a.zip"}
        )
        file = {"type": "file", "data": {"file": "a.zip", "file_id": "/x"}}
        await bot.say_group(group, user, [{"type": "at", "data": {"qq": bot.self_id}}, file])
        assert spoken(await bot.next_action()).strip().endswith("thanks")
        await bot.no_action(group=group)
    assert len(live.rows(LINES, str(group))) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"notice_type": "group_ban", "sub_type": "lift_ban", "user_id": "all", "duration": "x"},
        {"notice_type": "group_card", "card_new": "x" * 2**20},
        {"notice_type": "group_upload", "file": "x" * 2**20},
        {"notice_type": "group_msg_emoji_like", "likes": [{"emoji_id": {"a": []}}] * 1_000},
        {"notice_type": "notify", "sub_type": "title", "title": {"flag": {}}},
        {"notice_type": "group_ban", "sub_type": "ban", "duration": 10**40},
        {"notice_type": "essence", "sender_id": [], "operator_id": {}},
    ],
    ids=lambda fields: fields["notice_type"],
)
async def test_hostile_notices_are_short_lines(live, model, fields):
    group = fresh_id()
    async with client(live) as bot:
        await notice(bot, group, fresh_id(), **fields)
        row = await live.row(LINES, str(group))
        await bot.no_action(group=group)
    assert len(row["words"]) <= 200
    assert len(shown(live, group)) == 1


async def test_an_account_that_goes_offline_is_a_line_on_its_own_page(live, model):
    account = fresh_id()
    async with client(live, account) as bot:
        await bot.tell(
            "notice", notice_type="bot_offline", user_id=account, message="<i>kicked</i>"
        )
        await live.row("SELECT id FROM onebot_clientevent WHERE self_id = ?", str(account))
        await bot.no_action()
    (row,) = live.rows("SELECT id FROM onebot_bot WHERE self_id = ?", str(account))
    page = in_english(live, f"/admin/onebot/bot/{row['id']}/change/")
    assert "&lt;i&gt;kicked&lt;/i&gt;" in page


@pytest.mark.slow
async def test_a_flood_of_notices_costs_no_answer_and_no_backlog(live, model):
    model.script(["still here"])
    group, count = fresh_id(), 10_000
    async with client(live) as bot:
        for number in range(count):
            await notice(bot, group, 30_000 + number, notice_type="group_increase")
        await bot.say_group(group, fresh_id(), "are you there")
        assert "still here" in spoken(await bot.next_action())
        await live.row(f"{LINES} LIMIT 1 OFFSET {count - 1}", str(group))
    assert not bot.violations
