"""An account may have a token of its own: it opens that account alone, and nothing else opens
it."""

import asyncio
import re
import sqlite3
import time
from contextlib import closing

import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, handshake_status, spoken

A_TOKEN, B_TOKEN = "the-token-of-account-a", "the-token-of-account-b"
FORBIDDEN = 4003


@pytest.fixture
def cockpit(live):
    with closing(Cockpit(live)) as cockpit:
        yield cockpit


async def introduced(live, token: str = TOKEN) -> int:
    """An account that has connected once, so that it has a row."""
    account = fresh_id()
    async with FakeOneBot(live.ws_url, account, token=token):
        await live.row("SELECT id FROM onebot_bot WHERE self_id = ?", str(account))
    return account


def page(live, account: int) -> str:
    (row,) = live.rows("SELECT id FROM onebot_bot WHERE self_id = ?", str(account))
    return f"/admin/onebot/bot/{row['id']}/change/"


async def give(live, cockpit, account: int, token: str) -> None:
    fields = {"token_change": "type", "token_typed": token} if token else {"token_change": "clear"}
    await asyncio.to_thread(cockpit.fill, page(live, account), **fields)
    await until(live, account, token or TOKEN, 101)


async def until(live, account: int, token: str, wanted: int) -> None:
    """Wait until every process has heard of a change."""
    end = time.monotonic() + PATIENCE
    while await handshake_status(live.ws_url, self_id=account, token=token) != wanted:
        assert time.monotonic() < end, live.log[-2000:]
        await asyncio.sleep(0.05)


async def test_each_account_is_opened_by_its_own_token_alone(live, cockpit):
    a, b, other = [await introduced(live) for _ in range(3)]
    await give(live, cockpit, a, A_TOKEN)
    await give(live, cockpit, b, B_TOKEN)
    status = {
        (account, token): await handshake_status(live.ws_url, self_id=account, token=token)
        for account in (a, b, other)
        for token in (A_TOKEN, B_TOKEN, TOKEN, "wrong")
    }
    assert {pair for pair, found in status.items() if found == 101} == {
        (a, A_TOKEN),
        (b, B_TOKEN),
        (other, TOKEN),
    }
    assert await handshake_status(f"{live.ws_url}?access_token={A_TOKEN}", self_id=a) == 101
    assert await handshake_status(f"{live.ws_url}?access_token={A_TOKEN}", self_id=b) == 403
    assert (
        await handshake_status(
            live.ws_url, self_id=a, headers={"X-Self-ID": "not a number"}, token=A_TOKEN
        )
        == 403
    )


async def test_a_client_that_names_no_account_is_no_other_than_its_tokens(live, cockpit, model):
    model.script(["hello"])
    a, b = await introduced(live), await introduced(live)
    await give(live, cockpit, a, A_TOKEN)
    nameless = {"X-Self-ID": None}
    async with FakeOneBot(live.ws_url, b, token=A_TOKEN, headers=nameless, greet=False) as liar:
        await liar.lifecycle()
        assert await liar.close_code() == FORBIDDEN
    async with FakeOneBot(live.ws_url, a, token=TOKEN, headers=nameless, greet=False) as thief:
        await thief.say_private(fresh_id(), "I am A")
        assert await thief.close_code() == FORBIDDEN
    async with FakeOneBot(live.ws_url, a, token=A_TOKEN, headers=nameless, greet=False) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "hello"
    said = live.rows(
        "SELECT m.text FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id "
        "WHERE s.account = ?",
        str(a),
    )
    assert "I am A" not in str(said)


async def test_events_of_another_account_are_ignored_on_a_socket(live, cockpit, model):
    a, b, user = await introduced(live), await introduced(live), fresh_id()
    await give(live, cockpit, a, A_TOKEN)
    async with FakeOneBot(live.ws_url, a, token=A_TOKEN) as bot:
        await bot.say_private(user, "as B", self_id=b)
        await bot.no_action()
    assert live.rows("SELECT 1 FROM agent_chatsession WHERE account = ?", str(b)) == []


async def test_a_changed_token_ends_the_connection_that_the_old_one_opened(live, cockpit):
    a = await introduced(live)
    async with FakeOneBot(live.ws_url, a, token=TOKEN) as stolen:
        await give(live, cockpit, a, A_TOKEN)
        assert await stolen.close_code() in (FORBIDDEN, 4009)
    async with FakeOneBot(live.ws_url, a, token=A_TOKEN) as before:
        await asyncio.to_thread(
            cockpit.fill, page(live, a), token_change="type", token_typed=B_TOKEN
        )
        assert await before.close_code() == FORBIDDEN
    await live.logged(f"account {a} has a token of its own")
    async with FakeOneBot(live.ws_url, a, token=B_TOKEN) as before:
        await asyncio.to_thread(cockpit.fill, page(live, a), token_change="clear")
        assert await before.close_code() == FORBIDDEN
    await until(live, a, TOKEN, 101)


async def test_other_changes_of_the_row_disturb_no_connection(live, cockpit, model):
    model.script(["still here"])
    a = await introduced(live)
    await give(live, cockpit, a, A_TOKEN)
    async with FakeOneBot(live.ws_url, a, token=A_TOKEN) as bot:
        await asyncio.to_thread(cockpit.fill, page(live, a), owners="1 2 3")
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "still here"


async def test_a_token_is_shown_once_and_kept_as_a_hash(live, cockpit):
    a = await introduced(live)
    await asyncio.to_thread(cockpit.fill, page(live, a), token_change="make")
    shown = await asyncio.to_thread(cockpit.page, page(live, a))
    (token,) = re.findall(rf"{a}\b[^\n]*?([\w-]{{32}})", shown)
    await until(live, a, token, 101)
    assert token not in await asyncio.to_thread(cockpit.page, page(live, a))
    assert token not in live.log
    with closing(sqlite3.connect(live.data_dir / "frostagent.sqlite3")) as database:
        assert token not in "\n".join(database.iterdump())


@pytest.mark.parametrize(
    "fields",
    [
        {"token_change": "type", "token_typed": "too short"},
        {"token_change": "type", "token_typed": "sixteen signs and a space"},
        {"token_change": "type", "token_typed": "密钥" * 10},
        {"token_change": "type", "token_typed": ""},
        {"token_change": "", "token_typed": A_TOKEN},
        {"token_change": "other", "token_typed": ""},
    ],
)
async def test_what_is_no_token_is_not_taken(live, cockpit, fields):
    a = await introduced(live)
    with pytest.raises(AssertionError, match="was not saved"):
        await asyncio.to_thread(cockpit.fill, page(live, a), **fields)
    assert live.rows("SELECT token_hash FROM onebot_bot WHERE self_id = ?", str(a)) == [
        {"token_hash": ""}
    ]


async def test_a_restart_knows_the_tokens_before_the_first_client_comes(start_server):
    server = await asyncio.to_thread(start_server)
    a = await introduced(server)
    with closing(Cockpit(server)) as cockpit:
        await give(server, cockpit, a, A_TOKEN)
    await asyncio.to_thread(server.restart)
    assert await handshake_status(server.ws_url, self_id=a, token=TOKEN) == 403
    assert await handshake_status(server.ws_url, self_id=a, token=A_TOKEN) == 101


async def test_a_locked_database_holds_no_handshake_with_an_own_token_up(live, cockpit):
    a = await introduced(live)
    await give(live, cockpit, a, A_TOKEN)
    with closing(
        sqlite3.connect(live.data_dir / "frostagent.sqlite3", isolation_level=None)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(10):  # the lock lasts until the test ends it
            assert await handshake_status(live.ws_url, self_id=a, token=A_TOKEN) == 101
            assert await handshake_status(live.ws_url, self_id=a, token=TOKEN) == 403
        other.execute("ROLLBACK")
