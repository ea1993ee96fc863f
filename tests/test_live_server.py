"""The harness around a real server process: it starts, is seen into, and ends as it is told."""

import signal

import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer


async def test_a_message_goes_through_the_shared_server(live, model):
    model.script(["你好"])
    user = fresh_id()
    async with FakeOneBot(live.ws_url, fresh_id(), token=TOKEN) as bot:
        await bot.say_private(user, "hi")
        assert spoken(await bot.next_action()) == "你好"
        row = await live.row(
            "SELECT text FROM agent_message WHERE sender_id = ? AND state = 'answered'", str(user)
        )
        assert row == {"text": "hi"}
        await bot.no_action(user=user)


async def test_silence_in_a_group_is_proven_on_the_shared_server(live, model):
    group = fresh_id()
    async with FakeOneBot(live.ws_url, fresh_id(), token=TOKEN) as bot:
        await bot.say_group(group, fresh_id(), "not for you", mention=False)
        await bot.no_action(group=group)


def test_a_terminated_server_ends_by_itself_and_keeps_its_folder(start_server):
    server = start_server()
    assert server.terminate() == 0
    assert not server.is_healthy()
    server.restart(MAX_ITERATIONS="2")
    assert server.is_healthy()
    assert len(server.rows("SELECT id FROM auth_user")) == 1


@pytest.mark.parametrize("fresh", [False, True])
def test_a_killed_server_can_be_started_again(start_server, fresh):
    server = start_server(program="daphne", fresh=fresh)
    assert server.kill() == -signal.SIGKILL
    assert server.start().is_healthy()


def test_a_server_that_does_not_start_shows_its_log_and_leaves_nothing():
    server = LiveServer({"MAX_ITERATIONS": "lots"})
    with pytest.raises(AssertionError, match="MAX_ITERATIONS"):
        server.__enter__()
    assert not server.folder.exists()
