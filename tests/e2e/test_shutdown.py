"""SIGTERM and Ctrl-C: what runs is finished or handed on, clients are told, and the process ends
with status 0."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from agent.record.ground.commit import OUTAGE_WATER
from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.e2e.brisk import BriskServer
from tests.e2e.test_refusing_database import full_disk, ready
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import HURRIED, LiveServer
from tests.scripted_model import ScriptedModel, call, held, says

GOING_AWAY = 1001
#: What the process may take to end, in seconds: runs have ten.
PATIENCE = 15.0


def installation(
    model_server: ScriptedModel, *program: Any, **limits: float
) -> Iterator[LiveServer]:
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "HTTP_API_TOKEN": TOKEN,
    }
    server = LiveServer(env, *program, limits=limits)
    yield server
    server.remove()


@pytest.fixture(scope="module", params=["runserver", "daphne"])
def either(model_server, request):
    """An installation under each of the two commands, started by each test itself."""
    yield from installation(model_server, request.param)


@pytest.fixture(scope="module")
def hurried(model_server):
    """Runs are given half a second to finish there, and not ten."""
    yield from installation(model_server, **HURRIED)


async def begin(server: LiveServer) -> None:
    await asyncio.to_thread(server.restart)


async def until_it_listens_no_more(server: LiveServer) -> None:
    while await asyncio.to_thread(server.is_healthy):
        pass


async def end_of(server: LiveServer) -> int | None:
    return await asyncio.to_thread(server.exit_code, PATIENCE)


# --- Both commands ----------------------------------------------------------------


async def test_clients_are_told_and_the_status_is_zero_however_old_a_connection_is(either):
    await begin(either)
    bots = [FakeOneBot(either.ws_url, fresh_id(), token=TOKEN) for _ in range(3)]
    with socket.create_connection(
        ("127.0.0.1", either.port)
    ):  # one that asks for nothing does not hold the end up
        async with bots[0]:
            await asyncio.sleep(2.5)  # what went wrong under daphne's own server depended on age
            async with bots[1]:
                await asyncio.sleep(0.5)
                async with bots[2]:
                    os.kill(either.pid, signal.SIGTERM)
                    assert [await bot.close_code() for bot in bots] == [GOING_AWAY] * 3
                    assert await end_of(either) == 0


async def test_what_runs_is_answered_and_what_came_meanwhile_is_answered_after_the_restart(
    either, model
):
    model.answer_with(lambda request: held(f"re {request.last_text.rpartition(chr(10))[2]}"))
    await begin(either)
    account, user = fresh_id(), fresh_id()
    async with FakeOneBot(either.ws_url, account, token=TOKEN) as bot:
        question = asyncio.create_task(asyncio.to_thread(ask, either, "what?"))
        await bot.say_private(user, "one")
        await model.wait_for_requests(2)
        os.kill(either.pid, signal.SIGTERM)
        await until_it_listens_no_more(either)
        await bot.say_private(user, "two")
        await either.row(
            "SELECT 1 FROM agent_message WHERE text = 'two' AND sender_id = ?", str(user)
        )
        model.release(2)
        assert (await question, spoken(await bot.next_action())) == ((200, "re what?"), "re one")
        assert await bot.close_code() == GOING_AWAY
        assert await end_of(either) == 0
    model.release()
    await begin(either)
    async with FakeOneBot(either.ws_url, account, token=TOKEN) as bot:
        assert spoken(await bot.next_action()) == "re two"
        await bot.no_action(user=user)


def ask(server: LiveServer, question: str) -> tuple[int, str]:
    """The status and the result of a question over HTTP."""
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    ) as connection:
        connection.request(
            "POST",
            "/agent/query",
            json.dumps({"input": question}),
            {"Authorization": f"Bearer {TOKEN}"},
        )
        response = connection.getresponse()
        return response.status, json.loads(response.read())["result"]


@pytest.mark.parametrize("program", ["runserver", "daphne"])
async def test_control_c_ends_it_in_order_too(start_server, program):
    server = await asyncio.to_thread(start_server, program, empty=True)
    async with FakeOneBot(server.ws_url, fresh_id(), token=TOKEN) as bot:
        os.kill(server.pid, signal.SIGINT)
        assert await bot.close_code() == GOING_AWAY
        assert await end_of(server) == 0
    assert "Traceback" not in server.log


class BackgroundServer(LiveServer):
    """Started in the background of a script, as ``sh`` does that: SIGINT is ignored."""

    def _command(self) -> list[str]:
        return ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *super()._command()]


async def test_in_the_background_of_a_script_it_hears_sigterm_and_no_ctrl_c():
    with BackgroundServer({"ONEBOT_ACCESS_TOKEN": TOKEN}, fresh=True) as server:
        async with FakeOneBot(server.ws_url, fresh_id(), token=TOKEN) as bot:
            os.kill(server.pid, signal.SIGINT)
            assert await asyncio.to_thread(server.exit_code, 0.5) is None
            os.kill(server.pid, signal.SIGTERM)
            assert await bot.close_code() == GOING_AWAY
            assert await end_of(server) == 0


# --- What does not finish in time -------------------------------------------------

#: After which `docker stop` kills, in seconds.
DOCKER_PATIENCE = 10.0


async def seconds_to_end(server: LiveServer) -> float:
    began = asyncio.get_running_loop().time()
    os.kill(server.pid, signal.SIGTERM)
    assert await end_of(server) == 0, server.log
    return asyncio.get_running_loop().time() - began


@pytest.mark.slow
async def test_it_ends_while_postgresql_answers_nothing(model_server, model, postgres_server):
    model.script([held("too late")])
    with type(postgres_server)() as postgres:
        address = {"DATABASE_URL": postgres.new_database(), "LANGUAGE_CODE": "en"}
        server = BriskServer(scripted_env(model_server) | address, limits={"heartbeat": 0.2})
        with server.migrate() as server:
            async with FakeOneBot(server.ws_url, fresh_id(), token=TOKEN) as bot:
                await bot.say_private(fresh_id(), "hi")
                await model.wait_for_requests(1)
                with postgres.frozen():
                    await bot.say_private(fresh_id(), "nobody will know of this")
                    assert await seconds_to_end(server) < DOCKER_PATIENCE
            assert "writes are lost" in server.log


@pytest.mark.slow
async def test_it_ends_while_the_disk_is_full_and_says_what_is_lost(model_server, model):
    model.script([held("too late")])
    with LiveServer(scripted_env(model_server)) as server:
        async with FakeOneBot(server.ws_url, fresh_id(), token=TOKEN) as bot:
            await bot.say_private(fresh_id(), "hi")
            await model.wait_for_requests(1)
            async with full_disk(server):
                await bot.say_private(fresh_id(), "nobody will know of this")
                await ready(server, 503)
                for _ in range(2 * OUTAGE_WATER):
                    await bot.say_private(fresh_id(), "nor of this")
                assert await seconds_to_end(server) < DOCKER_PATIENCE
        lost = [int(count) for count in re.findall(r"(\d+) writes are lost", server.log)]
        assert 0 < lost[0] < 1.5 * OUTAGE_WATER


async def test_what_does_not_finish_is_taken_up_once_and_what_was_written_is_not_written_again(
    hurried, model
):
    model.script([held("too late")])
    model.answer_with(lambda request: says(f"re {request.last_text.rpartition(chr(10))[2]}"))
    await begin(hurried)
    account, thinking, waiting = fresh_id(), fresh_id(), fresh_id()
    async with FakeOneBot(hurried.ws_url, account, token=TOKEN) as bot:
        bot.stay_silent()
        await bot.say_private(thinking, "hi")
        await model.wait_for_requests(1)
        await bot.say_private(waiting, "hello")
        written = await bot.next_action()
        assert await asyncio.to_thread(hurried.terminate) == 0
        assert await bot.close_code() == GOING_AWAY
    await begin(hurried)
    async with FakeOneBot(hurried.ws_url, account, token=TOKEN) as bot:
        assert spoken(await bot.next_action()) == "re hi"
        await hurried.row(
            "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(waiting)
        )
        await bot.no_action(user=waiting)
        await bot.no_action(user=thinking)
        assert hurried.rows("SELECT state FROM agent_message WHERE echo = ?", written["echo"]) == [
            {"state": "unknown"}
        ]
        await bot.answer(written)
        await hurried.row(
            "SELECT 1 FROM agent_message WHERE echo = ? AND state = 'delivered'", written["echo"]
        )
    runs = (
        "SELECT run.state FROM agent_run run JOIN agent_message m ON m.id = run.message_id WHERE "
        "m.text IN ('hi', 'hello')"
    )
    assert hurried.rows(runs) == [{"state": "finished"}] * 2


async def test_a_wait_is_left_to_be_taken_up_again_and_what_came_meanwhile_is_answered_after_it(
    hurried, model
):
    model.answer_with(
        lambda request: (
            "There." if request.messages[-1]["role"] == "tool" else call("wait", seconds=3)
        )
    )
    await begin(hurried)
    account, group, user = fresh_id(), fresh_id(), fresh_id()
    async with FakeOneBot(hurried.ws_url, account, token=TOKEN) as bot:
        await bot.say_group(group, user, "wait")
        await hurried.row(
            "SELECT 1 FROM agent_toolcall WHERE requested_by = ? AND state = 'running'", str(user)
        )
        await bot.say_group(group, user, "and then?")
        await hurried.row(
            "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'waiting'", str(user)
        )
        assert await asyncio.to_thread(hurried.terminate) == 0
    model.script(["There.", "Then this."])
    await begin(hurried)
    async with FakeOneBot(hurried.ws_url, account, token=TOKEN) as bot:
        assert [spoken(await bot.next_action()).strip() for _ in range(2)] == [
            "There.",
            "Then this.",
        ]
    (wait,) = hurried.rows(
        "SELECT state, result FROM agent_toolcall WHERE requested_by = ?", str(user)
    )
    assert (wait["state"], wait["result"].startswith("等待结束：计划 3 秒，实际 ")) == (
        "succeeded",
        True,
    )


async def test_who_asks_for_page_after_page_does_not_keep_it_from_ending(hurried):
    await begin(hurried)
    is_over = threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", hurried.port, timeout=PATIENCE)
        with contextlib.suppress(OSError, http.client.HTTPException):
            while not is_over.is_set():
                connection.request("GET", "/admin/login/")
                connection.getresponse().read()
        connection.close()

    asking = [asyncio.create_task(asyncio.to_thread(ask)) for _ in range(8)]
    try:
        await asyncio.to_thread(requests.get, f"{hurried.url}/admin/login/", timeout=PATIENCE)
        os.kill(hurried.pid, signal.SIGTERM)
        assert await end_of(hurried) == 0
    finally:
        is_over.set()
        await asyncio.gather(*asking)
    assert "did not end within" not in hurried.log
