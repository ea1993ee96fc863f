"""The system under test and all around it: server processes, their services, the model, the
accounts."""

import asyncio
import contextlib
import math
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import requests

from chaos import record
from chaos.client import TOKEN, Account
from chaos.hands import TakeOver, Written
from chaos.model import ChaosModel
from chaos.process import BRISK, ChaosServer
from chaos.record import Record
from tests.commit_cutter import CommitCutter
from tests.services import PostgresServer, RedisServer

FIRST_ACCOUNT = 10_001
ACCOUNTS = 3
#: Time between two looks at the record while it comes to rest, in seconds.
LOOK_SECONDS = 1.0
_ENV = {
    "MODEL_NAME": "chaos",
    "ONEBOT_ACCESS_TOKEN": TOKEN,
    "FETCH_ALLOW": "127.0.0.1",
    "LLM_TIMEOUT": "20",
    "LANGUAGE_CODE": "en",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """How the system is set up: one process on SQLite, or several on PostgreSQL and Redis."""

    processes: int = 1
    is_brisk: bool = False
    latency: tuple[float, float] = (0.05, 0.6)
    """Of the model, in seconds."""
    settings: dict[str, str] = field(default_factory=dict)
    has_second: bool = False
    """Whether there is a second endpoint, which is asked when the first fails."""

    @property
    def is_cluster(self) -> bool:
        return self.processes > 1


class World:
    """Everything of one scenario. Made by :func:`build`."""

    redis: RedisServer
    postgres: PostgresServer
    cutter: CommitCutter

    def __init__(self, shape: Shape, model: ChaosModel) -> None:
        self.shape, self.model = shape, model
        self.servers: list[ChaosServer] = []
        self.accounts: list[Account] = []
        self.hands: list[Written] = []
        self.taken: list[TakeOver] = []
        self.ends = 0
        """Lives of server processes that came to an end."""
        self.notes: list[str] = []
        """What faults had to say."""
        self.complaints: list[tuple[str, str]] = []
        """What is wrong of itself: its kind (see :data:`chaos.judge.KINDS`), and words."""

    async def ready(self, server: ChaosServer) -> int:
        """The status of ``/ready``, 0 when nothing answers."""
        try:
            return (
                await asyncio.to_thread(requests.get, f"{server.url}/ready", timeout=5)
            ).status_code
        except requests.RequestException:
            return 0

    async def recovered(self, seconds: float = 60) -> None:
        """Wait until every server that runs can put messages on record again, and say so where one
        cannot."""
        end = time.monotonic() + seconds
        for server in [server for server in self.servers if server.is_running]:
            while server.is_running and await self.ready(server) != 200:
                if time.monotonic() > end:
                    self.notes.append(
                        "a server could not write a minute after its database was back"
                    )
                    return
                await asyncio.sleep(LOOK_SECONDS)

    async def rested(self, seconds: float) -> bool:
        """Whether nothing on record is left to do, and stays so. False once nothing was done in
        ``seconds``: a busy machine has a long queue, and what hangs gets nowhere."""
        end, calm, least = time.monotonic() + seconds, 0, math.inf
        while calm < 2:
            if time.monotonic() > end:
                return False
            await asyncio.sleep(LOOK_SECONDS)
            left = len((await self.read()).unended())
            if left < least:
                end, least = time.monotonic() + seconds, left
            calm = 0 if left else calm + 1
        return True

    async def read(self) -> Record:
        return await asyncio.to_thread(record.read, self.servers[0])

    async def mend(self) -> None:
        """Have every process run and every account connected."""
        for server in self.servers:
            if not server.is_running:
                self.complaints.append(
                    ("crashed", f"the server at port {server.port} ended by itself")
                )
                await server.begin()
        async with asyncio.timeout(60):
            await asyncio.gather(*(account.connected() for account in self.accounts))


@contextlib.asynccontextmanager
async def build(shape: Shape, seed: str, mutant: str = "") -> AsyncIterator[World]:
    """A world that is up, every account connected; ended and deleted on exit."""
    async with contextlib.AsyncExitStack() as stack:
        world = World(shape, await stack.enter_async_context(ChaosModel(seed, shape.latency)))
        env = _ENV | {"UPSTREAM_ENDPOINT": world.model.url} | shape.settings
        database = ""
        if shape.is_cluster:
            services, database = await _services(world, stack)
            env |= services
        pace = BRISK if shape.is_brisk else {}
        world.servers = [ChaosServer(env, pace, database, mutant) for _ in range(shape.processes)]
        for server in world.servers:
            stack.callback(server.remove)
        second = [world.model.second_url] if shape.has_second else []
        await asyncio.to_thread(world.servers[0].prepare, world.model.tool_url, *second)
        await asyncio.gather(*(server.begin() for server in world.servers))
        chance = random.Random(f"{seed}/accounts")
        for number in range(ACCOUNTS):
            home = number % shape.processes
            account = Account(
                FIRST_ACCOUNT + number, world.servers, home, retells=chance.random() < 0.5
            )
            stack.push_async_callback(account.stop)
            account.start()
            world.accounts.append(account)
        await world.mend()
        yield world


async def _services(world: World, stack: contextlib.AsyncExitStack) -> tuple[dict[str, str], str]:
    """What servers are told of their services, and the database's address past the proxy."""
    world.redis, world.postgres = RedisServer(), PostgresServer()
    await asyncio.to_thread(stack.enter_context, world.redis)
    await asyncio.to_thread(stack.enter_context, world.postgres)
    database = await asyncio.to_thread(world.postgres.new_database)
    parts = urlsplit(database)
    (folder,) = parse_qs(parts.query)["host"]
    world.cutter = await stack.enter_async_context(CommitCutter(folder))
    through = f"postgres://postgres@{parts.path}?host={world.cutter.folder}"
    return {"DATABASE_URL": through, "REDIS_URL": world.redis.url}, database
