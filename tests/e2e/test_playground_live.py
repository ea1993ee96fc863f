"""The playground over the real socket: whose it is, what closes it, and that it can be erased while
somebody plays."""

import asyncio
from collections.abc import Iterator

import pytest

from agent.domain.types import playground_account
from tests.conftest import TOKEN, scripted_env
from tests.e2e.chat import client
from tests.fake_onebot import FakeOneBot, handshake_status, spoken, text
from tests.live_server import HURRIED, LiveServer
from tests.scripted_model import ScriptedModel, held
from tests.security.people import accounts, run
from tests.security.players import dialling, fetch_token, playground, sign_in

CHANGE = """
import json, sys, django
django.setup()
from django.contrib.auth.models import User
given = json.load(sys.stdin)
user = User.objects.get(username=given["name"])
if given["active"] is None:
    user.groups.clear()
else:
    User.objects.filter(pk=user.pk).update(is_active=given["active"])
"""
ANN, BOB, CAT, DAN = "ann", "bob", "cat", "dan"
#: The first user of a server is its admin.
ACCOUNTS = {name: playground_account(pk) for pk, name in enumerate((ANN, BOB, CAT, DAN), 2)}


@pytest.fixture(scope="module")
def live(model_server: ScriptedModel) -> Iterator[LiveServer]:
    """A server that asks often whether a playground may stay open, and its operators."""
    with LiveServer(scripted_env(model_server), limits=HURRIED) as server:
        accounts(server, **dict.fromkeys(ACCOUNTS, "operator"))
        yield server


async def test_player_speaks_with_the_bot(live, model):
    model.script(["hello from the bot"])
    ann = await sign_in(live, ANN)
    async with playground(live, ann, await fetch_token(ann)) as bot:
        await bot.say_private(1001, "hi")
        assert spoken(await bot.next_action()) == "hello from the bot"
    page = await asyncio.to_thread(ann.page, "/admin/onebot/bot/")
    assert "FrostAgent playground" in page


async def test_token_opens_nothing_but_its_own_playground(live):
    ann, bob = await sign_in(live, ANN), await sign_in(live, BOB)
    token = await fetch_token(ann)
    url = f"{live.ws_url}?access_token={token}"
    for person, self_id in ((ann, "10001"), (ann, ACCOUNTS[BOB]), (bob, ACCOUNTS[ANN])):
        options = dialling(person, token, **{"X-Self-ID": self_id})
        assert await handshake_status(url, **options) == 403
    assert await handshake_status(url, **dialling(None, token)) == 403
    assert await handshake_status(url, **dialling(ann, token), origin="http://evil.example") == 403
    assert await handshake_status(url, **dialling(ann, token)) == 101


async def test_common_token_opens_no_playground(live):
    assert await handshake_status(live.ws_url, self_id=ACCOUNTS[ANN], token=TOKEN) == 403
    async with FakeOneBot(
        live.ws_url, ACCOUNTS[ANN], token=TOKEN, headers={"X-Self-ID": None}
    ) as bot:  # whose account it is says the first event
        assert await bot.close_code() == 4003


@pytest.mark.parametrize(("name", "active"), [(BOB, None), (CAT, False)])
async def test_socket_is_closed_when_its_user_may_play_no_more(live, name, active):
    person = await sign_in(live, name)
    async with playground(live, person, await fetch_token(person)) as bot:
        await asyncio.to_thread(run, live, CHANGE, {"name": name, "active": active})
        assert await bot.close_code() == 4003


async def test_socket_is_closed_when_the_session_ends(live):
    dan = await sign_in(live, DAN)
    token = await fetch_token(dan)
    async with playground(live, dan, token) as bot:
        await asyncio.to_thread(dan.send, "/admin/logout/")
        assert await bot.close_code() == 4003
    again = dialling(dan, token)
    async with FakeOneBot(f"{live.ws_url}?access_token={token}", **again, greet=False) as bot:
        assert await bot.close_code() == 4003


async def test_person_of_a_playground_is_no_other_bot(live, model):
    model.script(["yes"])
    ann = await sign_in(live, ANN)
    async with (
        client(live) as real,
        playground(live, ann, await fetch_token(ann)) as bot,
    ):
        await bot.say_private(real.self_id, "hi")
        assert spoken(await bot.next_action()) == "yes"


async def test_playground_is_erased_while_an_answer_is_under_way(live, model):
    ann = await sign_in(live, ANN)
    async with playground(live, ann, await fetch_token(ann)) as bot:
        model.script([held("nobody reads this"), "a fresh answer"])
        await bot.say_private(1002, "hi")
        await model.wait_for_requests(1)
        answer = await asyncio.to_thread(ann.send, "/admin/playground/erase/")
        assert answer.json()["erased"] >= 1
        model.release()
        await bot.say_private(1002, "again")
        assert text("a fresh answer") in (await bot.next_action())["params"]["message"]


async def test_an_event_without_an_account_is_filed_under_the_one_of_the_socket(live, model):
    ann = await sign_in(live, ANN)
    async with playground(live, ann, await fetch_token(ann)) as bot:
        await bot.send_raw('{"post_type": "notice", "notice_type": "unheard_of"}')
        row = await live.row(
            "SELECT self_id FROM onebot_clientevent WHERE detail_type = 'unheard_of'"
        )
    assert row["self_id"] == ann.account
