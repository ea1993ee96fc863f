"""The handshake over real sockets: who gets in, and that a refusal is a 403 with a reason in the
log."""

import asyncio
import http.client
import sqlite3
from contextlib import closing

import pytest
from websockets.asyncio.client import connect

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.fake_onebot import FakeOneBot, handshake_status, spoken
from tests.live_server import LiveServer


async def status(server: LiveServer, **headers: str | None) -> int:
    """The answer to a handshake with these headers and no other token; underscores stand for
    hyphens."""
    return await handshake_status(
        server.ws_url,
        self_id=fresh_id(),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


# --- With a token ---------------------------------------------------------------


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"token {TOKEN}"])
async def test_the_token_opens_the_door(live, authorization):
    assert await status(live, Authorization=authorization) == 101


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", f"Basic {TOKEN}"])
async def test_everything_else_is_refused_with_a_403(live, authorization):
    assert await status(live, Authorization=authorization) == 403


async def test_the_token_in_the_address_opens_the_door_and_is_not_logged(live):
    user = fresh_id()
    url = f"{live.ws_url}?access_token={TOKEN}"
    assert await handshake_status(url, self_id=user) == 101
    assert await handshake_status(f"{live.ws_url}?access_token=wr0ng-guess", self_id=user) == 403
    log = await live.logged("presented a wrong access token")
    assert f"access_token={TOKEN}" not in log
    assert "wr0ng-guess" not in log


async def test_a_token_in_the_address_is_not_in_the_access_log(contrary):
    """daphne's own command writes one."""
    account = fresh_id()
    assert (
        await handshake_status(f"{contrary.ws_url}?access_token=gu3ss-{account}", self_id=account)
        == 403
    )
    assert await handshake_status(f"{contrary.ws_url}?access_token={TOKEN}", self_id=account) == 101
    await contrary.logged(f"Account {account} disconnected")
    assert f"gu3ss-{account}" not in contrary.log
    assert f"access_token={TOKEN}" not in contrary.log


async def test_an_account_that_is_no_number_is_refused(live):
    assert await status(live, Authorization=f"Bearer {TOKEN}", X_Self_ID="a b") == 403


@pytest.mark.parametrize(("role", "wanted"), [(None, 101), ("EVENT", 101), ("banana", 403)])
async def test_roles_are_understood_in_any_case_and_unknown_ones_refused(live, role, wanted):
    assert await status(live, Authorization=f"Bearer {TOKEN}", X_Client_Role=role) == wanted


async def test_an_account_without_a_name_is_learnt_from_its_first_event(live, model):
    model.script(["hello"])
    account, user = fresh_id(), fresh_id()
    async with FakeOneBot(
        live.ws_url, account, token=TOKEN, headers={"X-Self-ID": None}, greet=False
    ) as bot:
        await bot.say_private(user, "hi")
        assert spoken(await bot.next_action()) == "hello"
        assert (await live.row("SELECT online FROM onebot_bot WHERE self_id = ?", str(account)))[
            "online"
        ]


@pytest.mark.parametrize("suffix", ["", "/", "/api", "/api/", "/event", "/event/"])
async def test_every_documented_path_leads_in(live, suffix):
    assert (
        await handshake_status(live.ws_url + suffix, self_id=fresh_id(), token=TOKEN, role=None)
        == 101
    )


@pytest.mark.parametrize("path", ["/", "/ws/frostagentx", "/ws/frostagent/other"])
async def test_other_paths_lead_nowhere(live, path):
    assert (
        await handshake_status(f"ws://127.0.0.1:{live.port}{path}", self_id=fresh_id(), token=TOKEN)
        == 403
    )


async def test_the_log_tells_why_a_client_was_refused(live):
    assert await status(live, Authorization=f"Bearer {TOKEN}", X_Client_Role="banana") == 403
    assert await status(live, Authorization=f"Bearer {TOKEN}", X_Self_ID="a b") == 403
    assert (
        await status(live, Authorization=f"Bearer {TOKEN}", Sec_WebSocket_Protocol="12.frost")
        == 403
    )
    await live.logged("X-Client-Role is not one of")
    await live.logged("X-Self-ID is no name")
    assert TOKEN not in (await live.logged("OneBot 12")).replace(f"access_token={TOKEN}", "")


async def test_a_hundred_refusals_are_one_line_in_the_log_and_disturb_nobody(live, model):
    model.script(["still here"])
    reason, before = "the client presented no access token", len(live.log)
    async with FakeOneBot(live.ws_url, fresh_id(), token=TOKEN) as bot:
        refusals = await asyncio.gather(*(status(live) for _ in range(100)))
        assert set(refusals) == {403}
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "still here"
    assert (await live.logged(reason))[before:].count(reason) <= 2  # one may stand before it


@pytest.mark.parametrize("compression", [None, "deflate"])
async def test_a_client_may_offer_compression_or_not(live, compression):
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Self-ID": str(fresh_id())}
    async with connect(
        live.ws_url, additional_headers=headers, compression=compression, proxy=None
    ) as socket:
        await (await socket.ping())


async def test_a_locked_database_does_not_hold_a_handshake_up(live, model):
    model.script(["late but here"])
    account, user = fresh_id(), fresh_id()
    with closing(
        sqlite3.connect(live.data_dir / "frostagent.sqlite3", timeout=30, isolation_level=None)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(10):  # the lock lasts until the test ends it
            bot = await FakeOneBot(live.ws_url, account, token=TOKEN).__aenter__()
        await bot.say_private(user, "hi")
        other.execute("ROLLBACK")
    assert spoken(await bot.next_action()) == "late but here"
    await bot.__aexit__(None)


# --- Without a token ------------------------------------------------------------


@pytest.mark.parametrize(("authorization", "wanted"), [(None, 101), ("Bearer anything", 403)])
async def test_where_loopback_is_trusted_a_client_of_this_machine_needs_no_token(
    contrary, authorization, wanted
):
    assert await status(contrary, Authorization=authorization) == wanted


async def test_where_loopback_is_trusted_nobody_gets_in_through_a_proxy(contrary):
    assert await status(contrary, Forwarded="for=127.0.0.1") == 403
    await contrary.logged("presented no access token")


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ("http://127.0.0.1:{port}", 101),
        ("https://panel.example", 101),
        ("http://trusted.example", 403),
        ("null", 403),
    ],
)
async def test_browsers_get_in_from_this_host_and_from_listed_origins(contrary, origin, wanted):
    assert (
        await handshake_status(
            contrary.ws_url, self_id=fresh_id(), origin=origin.format(port=contrary.port)
        )
        == wanted
    )


async def test_a_page_whose_name_was_pointed_at_this_machine_does_not_get_in(contrary):
    host = f"evil.example:{contrary.port}"
    assert await status(contrary, Host=host, Origin=f"http://{host}") == 403


# --- Plain HTTP -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "wanted"),
    [("/ws/frostagent", 426), ("/ws/frostagent/api", 426), ("/nowhere", 404)],
)
async def test_a_plain_request_is_told_what_is_there(live, path, wanted):
    connection = http.client.HTTPConnection("127.0.0.1", live.port, timeout=5)
    with closing(connection):
        connection.request("GET", path)
        assert connection.getresponse().status == wanted
