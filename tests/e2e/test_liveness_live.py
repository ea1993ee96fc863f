"""Clients that fall silent, and accounts that hear and cannot speak."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.e2e.test_connections import bot_row
from tests.fake_onebot import FakeOneBot, failed, spoken
from tests.live_server import LiveServer

HASTE = {
    "send": 0.3,
    "least_silence": 1.2,
    "silence_look": 0.1,
    "ping": 0.5,
    "unanswered_ping": 2.0,
}
SILENT = 4008


@pytest.fixture(scope="module")
def server(model_server) -> Iterator[LiveServer]:
    with LiveServer(scripted_env(model_server), limits=HASTE) as started:
        yield started


def client(server: LiveServer, account: int, **options) -> FakeOneBot:
    return FakeOneBot(server.ws_url, account, token=TOKEN, **options)


async def test_28_a_client_whose_heartbeats_stop_is_closed_and_its_row_says_so(server):
    account = fresh_id()
    async with client(server, account, role="Api"), client(server, account) as bot:
        await bot.heartbeat(interval=100)
        assert await bot.close_code() == SILENT
        row = await bot_row(server, account, "roles = 'api' AND silent_at IS NOT NULL")
        assert row["online"], "the Api socket stays, for nothing ever comes over it"
    lost = "SELECT * FROM onebot_clientevent WHERE self_id = ? AND detail_type = 'heartbeat_lost'"
    await server.row(lost, str(account))
    assert len(server.rows(lost, str(account))) == 1
    async with client(server, account):
        assert await bot_row(server, account, "online AND silent_at IS NULL")


async def test_a_client_that_sends_a_large_message_slowly_stays(server, model):
    account, person = fresh_id(), fresh_id()
    model.script(["here"])
    frame = {"post_type": "message", "message_type": "private", "sub_type": "friend", "time": 0}
    frame |= {"self_id": account, "user_id": person, "message": "hi", "sender": {}}
    words, sent = json.dumps(frame | {"message_id": 5}), asyncio.Event()

    async def pieces() -> AsyncIterator[str]:
        """So slowly that the server has long looked for silence."""
        for at in range(0, len(words), 10):
            yield words[at : at + 10]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await sent.wait()

    async with client(server, account) as bot:
        await bot.heartbeat(interval=100)
        await bot._socket.send(pieces())
        assert spoken(await bot.next_action()) == "here"


async def test_27_a_client_that_is_gone_without_a_word_is_taken_offline(server):
    account = fresh_id()
    async with client(server, account) as bot:
        await bot.heartbeat(interval=100)
        bot._socket.transport.pause_reading()  # it answers to no close frame
        await bot_row(server, account, "NOT online AND silent_at IS NOT NULL")
        bot.cut()


async def test_29_and_30_who_never_answers_pings_stays_for_its_heartbeats_alone(server):
    """Both have stopped to read their sockets; only one has said that heartbeats will come."""
    beating, dead = fresh_id(), fresh_id()
    alive, gone = client(server, beating, role="Event"), client(server, dead, role="Event")
    async with alive, gone:
        await alive.heartbeat(interval=60_000)
        await bot_row(server, beating, "last_heartbeat_at IS NOT NULL")
        for one in (alive, gone):
            one._socket.transport.pause_reading()
        await bot_row(server, dead, "NOT online AND silent_at IS NULL")
        assert (await bot_row(server, beating))["online"]
        alive._socket.transport.resume_reading()
        gone.cut()


async def test_an_account_that_hears_and_cannot_speak_is_told_until_a_message_arrives(
    server, model
):
    account, person = fresh_id(), fresh_id()
    model.script(["no"] * 5 + ["yes"])
    async with client(server, account) as bot:
        bot.answer_with(lambda _action: failed(1200, "risk control"))
        for _ in range(5):
            await bot.say_private(person, "hi")
            while spoken(await bot.next_action()) != "no":  # or an apology
                pass
        await bot_row(server, account, "cannot_speak_since IS NOT NULL")
        bot.answer_again()
        await bot.say_private(person, "hi")
        while spoken(await bot.next_action()) != "yes":
            pass
        await bot_row(server, account, "cannot_speak_since IS NULL")


async def test_an_answer_that_comes_late_says_that_the_account_can_speak(server, model):
    account, person = fresh_id(), fresh_id()
    model.answer_with(lambda _request: "hello")
    async with client(server, account) as bot:
        bot.stay_silent()
        for _ in range(5):
            await bot.say_private(person, "hi")
            last = await bot.next_action()
        await bot_row(server, account, "cannot_speak_since IS NOT NULL")
        await bot.answer(last)
        await bot_row(server, account, "cannot_speak_since IS NULL")
