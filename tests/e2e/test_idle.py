"""Traps of the platform: idle sockets on Redis, large frames under both commands, many writers on
SQLite."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from functools import partialmethod

import pytest
from channels_redis.core import RedisChannelLayer
from django.db import DatabaseError, connections, transaction
from django.db.models import F
from redis.asyncio.connection import AbstractConnection as Connection
from redis.exceptions import TimeoutError as RedisTimeoutError

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, spoken, text
from tests.live_server import LiveServer
from tools.models import ConfigVersion

# --- Idle sockets on Redis ----------------------------------------------------------

#: Stands for redis-py's own default of 5 s, in seconds.
SHORT = 0.3

_SHORT_DEFAULT = f"""
import sys
from functools import partialmethod
from redis.asyncio.connection import AbstractConnection as Connection
Connection.__init__ = partialmethod(Connection.__init__, socket_timeout={SHORT})
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


class HastyServer(LiveServer):
    """The real server on a redis-py that loses patience with a silent connection sooner."""

    def _command(self) -> list[str]:
        return [
            sys.executable,
            "-c",
            _SHORT_DEFAULT,
            "runserver",
            f"127.0.0.1:{self.port}",
            "--noreload",
        ]


@pytest.fixture
def hasty(model_server, redis_url) -> Iterator[LiveServer]:
    env = {
        "UPSTREAM_ENDPOINT": model_server.url,
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "REDIS_URL": redis_url,
    }
    with HastyServer(env) as server:
        yield server


async def test_a_socket_that_idles_longer_than_redis_would_wait_is_still_answered(hasty, model):
    model.script(["still here"])
    async with FakeOneBot(hasty.ws_url, fresh_id(), token=TOKEN) as bot:
        await asyncio.sleep(4 * SHORT)
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "still here"
    assert "cannot be read" not in hasty.log
    assert "Timeout" not in hasty.log


async def test_a_layer_that_leaves_the_time_limit_to_redis_does_not_survive_idling(
    redis_url, monkeypatch
):
    """Without this the test above would prove nothing on a version of redis-py that waits for ever
    by itself."""
    monkeypatch.setattr(
        Connection, "__init__", partialmethod(Connection.__init__, socket_timeout=SHORT)
    )
    layer = RedisChannelLayer(hosts=[redis_url])
    with pytest.raises(RedisTimeoutError):
        await asyncio.wait_for(layer.receive("nobody"), PATIENCE)
    await layer.close_pools()


# --- Large frames -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.may_block("the test itself makes and sends 64 MiB")
@pytest.mark.parametrize("server", ["live", "contrary"])
async def test_a_frame_of_64_mib_is_accepted_under_both_commands(request, model, server):
    """``live`` was started with ``runserver``, ``contrary`` with ``daphne``."""
    model.script(["heard all of it"])
    account, user = fresh_id(), fresh_id()
    async with FakeOneBot(request.getfixturevalue(server).ws_url, account, token=TOKEN) as bot:
        event = {
            "post_type": "message",
            "message_type": "private",
            "self_id": account,
            "user_id": user,
            "message": [text("hi")],
        }
        size = 64 * 2**20 - len(json.dumps({**event, "padding": ""}))
        await bot.send_raw(json.dumps({**event, "padding": "x" * size}))
        assert spoken(await bot.next_action()) == "heard all of it"


# --- Many writers on SQLite ---------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_writers_that_read_first_wait_for_each_other_and_lose_nothing():
    ConfigVersion.objects.create(pk=2, number=0)
    errors: list[DatabaseError] = []

    def count_up() -> None:
        try:
            for _ in range(20):
                with transaction.atomic():
                    before = ConfigVersion.objects.get(pk=2).number
                    ConfigVersion.objects.filter(pk=2, number=before).update(number=F("number") + 1)
        except DatabaseError as error:
            errors.append(error)
        finally:
            connections.close_all()

    writers = [threading.Thread(target=count_up) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert errors == []
    assert ConfigVersion.objects.get(pk=2).number == 8 * 20
