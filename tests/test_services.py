"""The servers that tests borrow really run, and the product's address parser understands them."""

import asyncio

import psycopg
import pytest
from channels_redis.core import RedisChannelLayer

from frostproject.configuration.env import parse_database_url

pytest.importorskip(
    "tests.services", reason="no server wheels for this platform", exc_type=ImportError
)
from tests.services import RedisServer


async def test_the_channel_layer_works_on_the_redis_server(redis_url):
    layer = RedisChannelLayer(hosts=[redis_url])
    await layer.send("somebody", {"type": "hello"})
    assert await asyncio.wait_for(layer.receive("somebody"), 5) == {"type": "hello"}
    await layer.close_pools()


def test_a_redis_server_comes_back_on_its_port():
    with RedisServer() as server:
        server.stop()
        assert not server.is_ready()
        server.start()
        assert server.is_ready()


def test_the_database_address_reaches_an_empty_database(postgres_url):
    entry = parse_database_url("DATABASE_URL", postgres_url)
    assert (entry["USER"], entry["PASSWORD"], entry["PORT"]) == ("postgres", "", "")
    with psycopg.connect(
        host=str(entry["HOST"]), user="postgres", dbname=str(entry["NAME"])
    ) as connection:
        tables = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone()
    assert tables == (0,)


def test_each_test_has_a_database_of_its_own(postgres_server, postgres_url):
    other = postgres_server.new_database()
    assert other != postgres_url
    postgres_server.drop_database(other)
