"""Servers on PostgreSQL and Redis: one alone, and two processes that share accounts, chats and
settings."""

import asyncio
import contextlib
import json
import signal

import pytest
import requests

from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.e2e.brisk import LEASE, BriskServer, known_to_others
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.weather import TOOLS, Group, Sources, sky
from tests.environment import PATIENCE
from tests.fake_onebot import ok, spoken
from tests.live_server import LiveServer
from tests.scripted_model import call, held, says

pytest.importorskip(
    "tests.services", reason="no server wheels for this platform", exc_type=ImportError
)
from tests.services import RedisServer

pytestmark = pytest.mark.slow

# --- One server ---------------------------------------------------------------------


async def test_a_server_on_postgresql_answers_with_a_tool_and_records_it(first, model):
    model.script([call("get_weather", city="Paris"), "sunny"])
    account, user = fresh_id(), fresh_id()
    async with client(first, account) as bot:
        await bot.say_private(user, "weather? \0")
        assert spoken(await bot.next_action()) == "sunny"
        row = await first.row(
            "SELECT run_id FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(user)
        )
        calls = first.rows(
            "SELECT tool_name, state, result FROM agent_toolcall WHERE run_id = ?", row["run_id"]
        )
        assert calls == [
            {
                "tool_name": "get_weather",
                "state": "succeeded",
                "result": "Paris 的天气是晴朗，温度 25°C",
            }
        ]
        await bot.no_action(user=user)


async def test_a_database_that_cuts_every_connection_costs_no_message(first, model):
    model.script(["before", "after"])
    user = fresh_id()
    async with client(first, fresh_id()) as bot:
        await bot.say_private(user, "one")
        assert spoken(await bot.next_action()) == "before"
        first.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
            "pg_backend_pid() AND datname IS NOT NULL"
        )
        await bot.say_private(user, "two")
        assert spoken(await bot.next_action()) == "after"
        await bot.no_action(user=user)


async def test_a_channel_layer_that_is_gone_stops_no_answer_and_is_named(model, model_server):
    model.script(["still here"])
    with RedisServer() as redis:
        env = {
            "UPSTREAM_ENDPOINT": model_server.url,
            "ONEBOT_ACCESS_TOKEN": TOKEN,
            "REDIS_URL": redis.url,
        }
        with LiveServer(env) as server:
            assert await asyncio.to_thread(readiness, server) == (200, [])
            redis.stop()
            assert await asyncio.to_thread(readiness, server) == (503, ["channel layer"])
            async with client(server, fresh_id()) as bot:
                await bot.say_private(fresh_id(), "anybody?")
                assert spoken(await bot.next_action()) == "still here"
            redis.start()
            assert await asyncio.to_thread(readiness, server) == (200, [])


def readiness(server: LiveServer) -> tuple[int, list[str]]:
    answer = requests.get(f"{server.url}/ready", timeout=PATIENCE)
    return answer.status_code, answer.json()["missing"]


# --- Two processes, one account -----------------------------------------------------


@pytest.mark.parametrize("order", ["Event first", "Api first"])
async def test_an_answer_goes_out_through_the_process_that_holds_the_api_socket(
    first, second, model, order
):
    model.script(["through the other one"])
    account, user = fresh_id(), fresh_id()
    api, event = (
        client(first, account, role="Api", greet=False),
        client(second, account, role="Event"),
    )
    async with event if order == "Event first" else api, api if order == "Event first" else event:
        await known_to_others(first, account)
        await event.say_private(user, "hi")
        action = await api.next_action()
        assert spoken(action) == "through the other one"
        assert event.actions == []
        await second.row(
            "SELECT 1 FROM agent_message WHERE echo = ? AND state = 'delivered'", action["echo"]
        )
        await second.row(
            "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(user)
        )


async def test_an_api_socket_still_serves_after_the_event_socket_elsewhere_has_ended(
    first, second, model
):
    model.script([held("one"), "two"])
    account, user = fresh_id(), fresh_id()
    async with client(first, account, role="Api", greet=False) as api:
        async with client(second, account, role="Event") as event:
            await known_to_others(first, account)
            await event.say_private(user, "hi")
            await model.wait_for_requests(1)
        await second.logged(f"Account {account} disconnected")
        model.release()
        assert spoken(await api.next_action()) == "one"
        async with client(second, account, role="Event") as event:
            await event.say_private(user, "again")
            assert spoken(await api.next_action()) == "two"


async def test_a_message_that_two_processes_receive_is_answered_once(first, second, model):
    model.answer_with(lambda request: says(f"re {request.last_text.rpartition(chr(10))[2]}"))
    account, user = fresh_id(), fresh_id()
    words = [f"message {number}" for number in range(20)]
    async with client(first, account) as one, client(second, account, role="Event") as two:
        for said in words:
            event = await one.say_private(user, said)
            await two.send_raw(json.dumps(event))
        heard = [spoken(await one.next_action()) for _ in words]
        assert sorted(heard) == sorted(f"re {said}" for said in words)
        await one.no_action(user=user)
    assert (
        len(
            first.rows(
                "SELECT 1 FROM agent_message WHERE sender_id = ? AND text LIKE 'message%%'",
                str(user),
            )
        )
        == 20
    )


async def test_one_chat_is_answered_in_order_whichever_process_its_messages_come_to(
    first, second, model
):
    model.answer_with(lambda request: held(f"re {request.last_text.rpartition(chr(10))[2]}"))
    account, user = fresh_id(), fresh_id()
    words = [f"m{number}" for number in range(6)]
    async with client(first, account) as one, client(second, account, role="Event") as two:
        for number, said in enumerate(words):
            await (two if number % 2 else one).say_private(user, said)
            await first.row(
                "SELECT 1 FROM agent_message WHERE sender_id = ? AND text = ?", str(user), said
            )
        model.release(100)
        assert [spoken(await one.next_action()) for _ in words] == [f"re {said}" for said in words]


async def test_a_tool_edited_in_one_process_is_live_in_the_other_on_the_next_message(
    first, second, model
):
    user, cockpit = fresh_id(), await asyncio.to_thread(Cockpit, first)
    async with client(second, fresh_id()) as bot:
        for value in ("rain in {city}", "snow in {city}"):
            model.script([call("get_weather", city="Oslo"), "told"])
            await asyncio.to_thread(cockpit.configure, "get_weather", mock_value=value)
            await bot.say_private(user, "weather?")
            assert spoken(await bot.next_action()) == "told"
            assert model.requests[-1].last_text == value.format(city="Oslo")
    cockpit.close()


# --- A process that ends ------------------------------------------------------------


async def test_the_work_of_a_killed_process_is_taken_over_by_the_one_its_account_comes_to(
    first, second, model
):
    model.script([held("never heard"), "taken over", "next"])
    account, user = fresh_id(), fresh_id()
    async with client(first, account) as bot:
        await bot.say_private(user, "one")
        await bot.say_private(user, "two")
        await first.row(
            "SELECT 1 FROM agent_message WHERE sender_id = ? AND text = 'two'", str(user)
        )
        await model.wait_for_requests(1)
        await asyncio.to_thread(first.kill)
    async with client(second, account) as bot:
        assert [spoken(await bot.next_action()), spoken(await bot.next_action())] == [
            "taken over",
            "next",
        ]
        await bot.no_action(user=user)
    runs = first.rows(
        "SELECT count(*) AS runs FROM agent_run run JOIN agent_message m ON m.id = "
        "run.message_id WHERE m.text = 'one' "
        "AND sender_id = ?",
        str(user),
    )
    assert runs == [{"runs": 1}]


async def test_what_a_killed_process_had_on_the_wire_is_not_sent_again_by_the_other(
    first, second, model
):
    model.script(["heard, perhaps"])
    account, user = fresh_id(), fresh_id()
    await asyncio.to_thread(first.restart, FROST_FAULT="frame_written")
    async with client(first, account) as bot:
        bot.stay_silent()
        await bot.say_private(user, "hi")
        action = await bot.next_action()
        assert await asyncio.to_thread(first.exit_code, PATIENCE) == -signal.SIGKILL
    first.env["FROST_FAULT"] = ""
    async with client(second, account) as bot:
        await second.row(
            "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(user)
        )
        await bot.no_action(user=user)
        echo = str(action["echo"])
        assert second.rows("SELECT state FROM agent_message WHERE echo = ?", echo) == [
            {"state": "unknown"}
        ]
        await bot.answer(action, ok({"message_id": 4711}))
        await second.row(
            "SELECT 1 FROM agent_message WHERE echo = ? AND state = 'delivered' AND "
            "message_id = '4711'",
            echo,
        )


async def test_the_work_of_a_stopped_process_is_taken_over_at_once(first, second, model):
    model.script([held("never heard"), "taken over"])
    account, user = fresh_id(), fresh_id()
    async with client(first, account) as bot:
        await bot.say_private(user, "hi")
        await model.wait_for_requests(1)
        assert await asyncio.to_thread(first.terminate) == 0
    claimed = "SELECT text FROM agent_message WHERE sender_id = ? AND claimed_by <> ''"
    assert second.rows(claimed, str(user)) == []
    async with client(second, account) as bot:
        assert spoken(await bot.next_action()) == "taken over"
        await bot.no_action(user=user)


async def test_an_answer_waits_for_its_account_when_the_process_that_held_it_was_killed(
    first, second, model
):
    model.script(["patience"])
    account, user = fresh_id(), fresh_id()
    async with client(second, account, role="Event") as event:
        async with client(first, account, role="Api", greet=False):
            await known_to_others(first, account)
            await asyncio.to_thread(first.kill)
        await asyncio.sleep(LEASE + 0.5)  # until the other process must know
        await event.say_private(user, "hi")
        await second.row(
            "SELECT 1 FROM agent_message WHERE text = 'patience' AND direction = 'out'"
        )
        async with client(second, account, role="Api", greet=False) as api:
            assert spoken(await api.next_action()) == "patience"


# --- Two processes, the same tools from outside ------------------------------------


async def test_what_is_set_up_in_one_process_serves_in_both_and_is_switched_off_in_both(
    first, second, model, file_server
):
    cockpit = Cockpit(first)
    sources = Sources(first, cockpit)
    await asyncio.to_thread(sources.set_up, sky(file_server))
    async with client(second, fresh_id()) as bot:
        group = Group(bot, model)
        for source in TOOLS:
            await group.notices(sources, source)
    for table in ("mcpserver", "plugin"):
        await first.row(f"SELECT 1 FROM tools_{table}status HAVING count(DISTINCT process_id) = 2")
    cockpit.close()


# --- Starts ---------------------------------------------------------------------------


async def test_processes_that_start_at_once_on_an_empty_database_disagree_about_no_row(
    model_server, postgres_url
):
    env = scripted_env(model_server) | {"DATABASE_URL": postgres_url, "LANGUAGE_CODE": "en"}
    servers = [BriskServer(env) for _ in range(3)]
    with contextlib.ExitStack() as started:
        for server in servers:
            started.callback(server.remove)
        await asyncio.to_thread(servers[0].migrate)
        await asyncio.gather(*(asyncio.to_thread(server.start) for server in servers))
        await servers[0].row("SELECT 1 FROM agent_modelendpoint WHERE name = '.env: CODER'")
        found = servers[0].rows("SELECT name FROM agent_modelendpoint ORDER BY name")
        assert [row["name"] for row in found] == [".env: CODER", ".env: UPSTREAM"]
        for server in servers:
            assert await asyncio.to_thread(server.terminate) == 0
            assert "duplicate key" not in server.log
