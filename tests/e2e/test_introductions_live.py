"""Who a client and its account are: asked once a connection, and waited for by nobody."""

import json

import pytest

from tests.cast import fresh_id
from tests.e2e.test_connections import bot_row, client
from tests.fake_onebot import failed, ok, spoken
from tests.live_server import LiveServer


def called(nickname: object, app: object, version: object = "1.0"):
    """How a client answers that calls its account and itself so."""
    login = ok({"user_id": 1, "nickname": nickname})
    own = ok({"app_name": app, "app_version": version})
    return lambda action: login if action["action"] == "get_login_info" else own


async def test_account_has_the_nickname_that_its_client_says(live):
    account = fresh_id()
    bot = client(live, account)
    bot.introduce = called("小霜", "LLOneBot", "4.2.0")
    async with bot:
        row = await bot_row(live, account, "client_name <> ''")
    assert (row["nickname"], row["client_name"]) == ("小霜", "LLOneBot/4.2.0")


async def test_client_is_asked_once_a_connection(live, model):
    account = fresh_id()
    for _connection in range(2):
        async with client(live, account) as bot:
            await bot.heartbeat()
            await bot.lifecycle()
            while len(bot.introductions) < 2:  # they come when they like
                await bot.no_action()
            await bot.no_action()
            asked = [one["action"] for one in bot.introductions]
        assert sorted(asked) == ["get_login_info", "get_version_info"]


async def test_client_that_says_nothing_of_itself_is_served_at_once(live, model):
    model.script(["hello"])
    bot = client(live, fresh_id())
    bot.introduce = lambda _action: None
    async with bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "hello"


@pytest.mark.parametrize(
    "answer", [failed(1404), ok([]), ok({"nickname": {"a": 1}, "app_name": 7})]
)
async def test_account_keeps_its_name_where_nobody_says_another(live, answer):
    account = fresh_id()
    async with client(live, account):
        await bot_row(live, account, "client_name <> ''")
    bot = client(live, account)
    bot.introduce = lambda _action: answer
    async with bot:
        row = await bot_row(live, account, "online AND client_name = ''")
    assert row["nickname"] == "bot"


async def test_name_of_forty_lines_is_one_line_and_no_longer_than_names_are(live):
    account = fresh_id()
    bot = client(live, account)
    bot.introduce = called("一行\n" * 40 + "\x00", "N\u202e" * 200)
    async with bot:
        row = await bot_row(live, account, "client_name <> ''")
    assert row["nickname"].startswith("一行 一行 ")
    assert (len(row["nickname"]), len(row["client_name"])) == (100, 200)
    assert "\n" not in json.dumps(row["nickname"], ensure_ascii=False)


async def test_event_socket_is_asked_nothing(live: LiveServer):
    account = fresh_id()
    async with client(live, account, role="Event") as bot:
        await bot.heartbeat()
        await bot_row(live, account, "last_heartbeat_at IS NOT NULL")
        assert bot.introductions == []
