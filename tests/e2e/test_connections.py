"""The life of connections: who speaks for an account, what replaces what, and where answers go."""

import asyncio
import contextlib
import json

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.fake_onebot import FakeOneBot, ok, spoken
from tests.live_server import LiveServer
from tests.scripted_model import held

REPLACED = 4009


def client(server: LiveServer, account: int, **options) -> FakeOneBot:
    return FakeOneBot(server.ws_url, account, token=TOKEN, **options)


async def bot_row(server: LiveServer, account: int, condition: str = "1") -> dict:
    """The account's row, awaited until it fulfils ``condition``."""
    return await server.row(
        f"SELECT * FROM onebot_bot WHERE self_id = ? AND {condition}", str(account)
    )


# --- Signs of life --------------------------------------------------------------


async def test_a_connected_account_is_shown_online_and_offline_after_it_left(live, model):
    account = fresh_id()
    async with client(live, account) as bot:
        row = await bot_row(live, account, "online")
        assert (row["implementation"], row["roles"]) == ("OneBot/11", "universal")
        await bot.no_action()
    assert (await bot_row(live, account, "NOT online"))["disconnected_at"]


async def test_a_cut_connection_takes_the_account_offline(live):
    account = fresh_id()
    bot = client(live, account)
    async with bot:
        await bot_row(live, account, "online")
        bot.cut()
        await bot_row(live, account, "NOT online")


async def test_a_client_that_never_greets_is_served_from_its_first_message(live, model):
    model.script(["hello"])
    async with client(live, fresh_id(), greet=False) as bot:
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "hello"


@pytest.mark.parametrize(
    "fields",
    [
        {"sub_type": "connect", "time": 1790},
        {"sub_type": "connect", "_post_method": 2},
        {"sub_type": "enable"},
        {"sub_type": "disable"},
        {"sub_type": None},
    ],
)
async def test_odd_lifecycle_events_are_taken_in_without_a_word(live, model, fields):
    async with client(live, fresh_id(), greet=False) as bot:
        await bot.lifecycle(**fields)
        await bot.no_action()


async def test_heartbeats_tell_whether_the_account_itself_is_online(live, model):
    account = fresh_id()
    async with client(live, account) as bot:
        await bot.heartbeat(online=False, interval=5000)
        assert (await bot_row(live, account, "account_online = 0"))["online"]
        await bot.heartbeat(online=None, interval=30000)
        assert (await bot_row(live, account, "account_online IS NULL"))["online"]
        await bot.heartbeat(online=True)
        assert (await bot_row(live, account, "account_online = 1"))["last_heartbeat_at"]
        await bot.no_action()


# --- Newer connections ----------------------------------------------------------


async def test_a_newer_connection_replaces_the_older_and_serves_at_once(live, model):
    model.script(["to the new one"])
    account = fresh_id()
    async with client(live, account) as old, client(live, account) as new:
        assert await old.close_code() == REPLACED
        await new.say_private(fresh_id(), "hi")
        assert spoken(await new.next_action()) == "to the new one"
        assert (await bot_row(live, account))["online"]


async def test_what_a_replaced_socket_still_says_is_handled_once_or_not_at_all(live, model):
    before = len(live.log)
    model.answer_with(lambda _request: "said once")
    account, user = fresh_id(), fresh_id()
    async with client(live, account) as old:
        old._socket.transport.pause_reading()  # it does not see that it is closed
        async with client(live, account) as new:
            with contextlib.suppress(ConnectionClosed):
                event = await old.say_private(user, "hi")
                await new.say_private(user, "hi", message_id=event["message_id"])
            assert spoken(await new.next_action()) == "said once"
            old._socket.transport.resume_reading()
            assert await old.close_code() == REPLACED
            await new.no_action(user=user)
    assert "Traceback" not in live.log[before:]


async def test_an_answer_being_made_goes_to_the_newer_connection(live, model):
    model.script([held("made for the old one")])
    account = fresh_id()
    async with client(live, account) as old:
        await old.say_private(fresh_id(), "hi")
        await model.wait_for_requests(1)
        async with client(live, account) as new:
            model.release()
            assert spoken(await new.next_action()) == "made for the old one"
        assert not old.actions


async def test_an_answer_waits_for_a_client_that_is_away(live, model):
    model.script([held("welcome back")])
    account, user = fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await bot.say_private(user, "hi")
        await model.wait_for_requests(1)
    await bot_row(live, account, "NOT online")
    model.release()
    await live.row(
        "SELECT id FROM agent_message WHERE direction = 'out' AND state = 'pending' AND text "
        "= 'welcome back'"
    )
    async with client(live, account) as bot:
        assert spoken(await bot.next_action()) == "welcome back"
        await bot.no_action(user=user)


async def test_a_client_that_reconnects_without_end_leaves_nothing_behind(live, model):
    before = len(live.log)
    model.script(["at last"])
    account = fresh_id()
    for _ in range(30):
        async with client(live, account):
            pass
    await bot_row(live, account, "NOT online")
    async with client(live, account) as bot:
        await bot_row(live, account, "online")
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "at last"
    assert "Traceback" not in live.log[before:]


# --- Two roles ------------------------------------------------------------------


@pytest.mark.parametrize(("api_path", "event_path"), [("", ""), ("/api", "/event")])
async def test_a_split_client_hears_answers_on_its_api_socket_alone(
    live, model, api_path, event_path
):
    model.script(["split"])
    account = fresh_id()
    api = FakeOneBot(live.ws_url + api_path, account, token=TOKEN, role="Api", greet=False)
    events = FakeOneBot(live.ws_url + event_path, account, token=TOKEN, role="Event")
    async with api, events:
        row = await bot_row(live, account, "roles LIKE '%api%' AND roles LIKE '%event%'")
        assert row["online"]
        await events.say_group(fresh_id(), fresh_id(), "hi")
        assert spoken(await api.next_action()) == " split"
        assert not events.actions


async def test_the_account_stays_online_while_one_of_its_sockets_is_there(live, model):
    account = fresh_id()
    async with client(live, account, role="Event") as events:
        async with client(live, account, role="API", greet=False):
            await bot_row(live, account, "roles LIKE '%api%'")
        await events.heartbeat(online=True)
        assert (await bot_row(live, account, "last_heartbeat_at IS NOT NULL"))["online"]


async def test_events_are_recorded_while_the_api_socket_is_away_and_answered_when_it_is_back(
    live, model
):
    model.script(["as soon as I can"])
    account, user = fresh_id(), fresh_id()
    async with client(live, account, role="Event") as events:
        await events.say_private(user, "hi")
        await live.row("SELECT id FROM agent_message WHERE sender_id = ?", str(user))
        await live.row(
            "SELECT id FROM agent_message WHERE state = 'pending' AND text = 'as soon as I can'"
        )
        async with client(live, account, role="Api", greet=False) as api:
            assert spoken(await api.next_action()) == "as soon as I can"
    await live.row(
        "SELECT id FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(user)
    )


# --- Several accounts -----------------------------------------------------------


async def test_an_answer_leaves_by_the_account_that_was_asked(live, model):
    model.answer_with(lambda request: f"to {request.last_text.rpartition(' ')[2]}")
    user, first, second = fresh_id(), fresh_id(), fresh_id()
    async with client(live, first) as one, client(live, second) as two:
        await one.say_private(user, "I am one")
        await two.say_private(user, "I am two")
        assert spoken(await one.next_action()) == "to one"
        assert spoken(await two.next_action()) == "to two"


async def test_two_accounts_never_share_a_session(live, model):
    model.script(["I know", "who?"])
    group, user, first, second = fresh_id(), fresh_id(), fresh_id(), fresh_id()
    async with client(live, first) as one, client(live, second) as two:
        await one.say_group(group, user, "my name is Ann")
        await one.next_action()
        await two.say_group(group, user, "who am I?")
        await two.next_action()
    assert "Ann" not in json.dumps(model.requests[1].messages)
    sessions = live.rows("SELECT account FROM agent_chatsession WHERE peer_id = ?", str(group))
    assert {row["account"] for row in sessions} == {str(first), str(second)}


# --- Answers on the next socket -------------------------------------------------


async def test_an_answer_on_the_next_socket_finds_its_action(live, model):
    model.script(["heard?"])
    account, user = fresh_id(), fresh_id()
    async with client(live, account) as old:
        old.stay_silent()
        await old.say_private(user, "hi")
        action = await old.next_action()
    async with client(live, account) as new:
        await new.answer(action, ok({"message_id": user}))
        await live.row(
            "SELECT id FROM agent_message WHERE message_id = ? AND state = 'delivered'", str(user)
        )
        await live.row(
            "SELECT id FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(user)
        )
        await new.no_action(user=user)


async def test_an_answer_of_another_account_is_not_taken(live, model):
    model.script(["heard?"])
    user = fresh_id()
    async with client(live, fresh_id()) as bot, client(live, fresh_id()) as stranger:
        bot.stay_silent()
        await bot.say_private(user, "hi")
        action = await bot.next_action()
        await stranger.answer(action, ok({"message_id": 1}))
        await stranger.no_action()
        await bot.answer(action, ok({"message_id": user}))
        await live.row(
            "SELECT id FROM agent_message WHERE message_id = ? AND state = 'delivered'", str(user)
        )


# --- Restarts and idle clients -------------------------------------------------------


async def test_an_echo_of_an_earlier_life_repairs_the_record_and_is_no_answer_to_a_new_call(
    start_server, model
):
    model.script(["before", "after"])
    server, account, user = start_server(), fresh_id(), fresh_id()
    async with client(server, account) as bot:
        bot.stay_silent()
        await bot.say_private(user, "hi")
        old = await bot.next_action()
        server.kill()
    await asyncio.to_thread(server.start)
    async with client(server, account) as bot:
        await server.row("SELECT id FROM agent_message WHERE text = 'before' AND state = 'unknown'")
        bot.stay_silent()
        await bot.say_private(user, "again")
        new = await bot.next_action()
        assert (spoken(new), new["echo"] != old["echo"]) == ("after", True)
        await bot.answer(old, ok({"message_id": 1}))
        await server.row(
            "SELECT id FROM agent_message WHERE text = 'before' AND state = 'delivered'"
        )
        assert server.rows("SELECT state FROM agent_message WHERE text = 'after'") == [
            {"state": "sent"}
        ]


async def test_a_client_that_only_pings_stays_connected(live):
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Self-ID": str(fresh_id())}
    async with connect(
        live.ws_url, additional_headers=headers, compression=None, proxy=None
    ) as socket:
        for _ in range(3):
            await (await socket.ping())
        assert socket.close_code is None
