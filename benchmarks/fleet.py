"""Several servers on one PostgreSQL and Redis beside one alone: what a message costs both, and what
they cost while nobody says anything."""

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from benchmarks.chats import CONNECTIONS, chats
from benchmarks.machine import cores, ended_seconds, usable, usage
from benchmarks.onebot_load import Load, Plan, connected, warm_up
from benchmarks.outcome import Outcome, of_tallies
from benchmarks.process import ROOT, TOKEN, Installation, Server, free_port
from benchmarks.tally import Tally

ROUNDS, MESSAGES, WARM_UP = 3, 3000, 200
IN_FLIGHT = 64
"""For each server, so that each of several has as much to do as one alone."""
LOST_SECONDS = 90
"""All servers may have one core between them."""
IDLE_SECONDS = 20.0
SETTLE_SECONDS = 3.0
MOST_COUNT = CONNECTIONS
"""An account is connected to one server: more than there are accounts would have nothing to do."""
SHARE = 0.8
"""Four servers are to do 3.2 times the work of one."""

Costs = dict[str, float]


@dataclass
class Services:
    """What the servers share, by the ids of their first processes."""

    postgres: int
    redis: int

    def seconds(self) -> Costs:
        """The CPU so far; that of the database's connections counts after they have ended too."""
        database = usage(self.postgres).cpu_seconds + ended_seconds(self.postgres)
        return {"database": database, "redis": usage(self.redis).cpu_seconds}


@dataclass
class Fleet:
    """Servers that run, with every account connected to one of them."""

    servers: list[Server]
    services: Services
    load: Load

    def seconds(self) -> Costs:
        """The CPU so far of all servers, and of what they share."""
        servers = sum(server.usage().cpu_seconds for server in self.servers)
        return {"servers": servers} | self.services.seconds()

    async def measured(self, count: int) -> tuple[Tally, Costs]:
        """The tally of so many messages, and the CPU milliseconds for each."""
        before = self.seconds()
        in_flight = IN_FLIGHT * len(self.servers)
        plan = Plan(chats(1000), count, in_flight=in_flight, timeout_seconds=LOST_SECONDS)
        tally = await self.load.run(plan)
        answered = max(1, tally.answered)
        return tally, {
            name: 1000 * (seconds - before[name]) / answered
            for name, seconds in self.seconds().items()
        }

    async def idle(self) -> Costs:
        """Percent of a core while no message comes."""
        await asyncio.sleep(SETTLE_SECONDS)
        before = self.seconds()
        await asyncio.sleep(IDLE_SECONDS)
        return {
            name: 100 * (seconds - before[name]) / IDLE_SECONDS
            for name, seconds in self.seconds().items()
        }


async def costs(installation: Installation, count: int, scale: float) -> Outcome:
    """One server and ``count`` of them, by turns, on the same database."""
    found: dict[int, list[Costs]] = {1: [], count: []}
    idle, last, tallies = dict[int, Costs](), dict[int, Tally](), list[Tally]()
    with _services(installation) as services:
        for number in range(ROUNDS):
            # The order changes by turns too. The first start of all is of one: it makes rows.
            for size in sorted(found, reverse=bool(number % 2)):
                async with _running(installation, services, size, scale) as fleet:
                    last[size], cost = await fleet.measured(round(MESSAGES * scale))
                    found[size].append(cost)
                    tallies.append(last[size])
                    if number == ROUNDS - 1:
                        idle[size] = await fleet.idle()
    figures = _figures(found, count) | _idle_figures(idle, count)
    return of_tallies(
        {"several_to_one": 1 / SHARE},
        figures,
        tallies,
        processes=count,
        rounds={size: [_rounded(cost) for cost in all_] for size, all_ in found.items()},
        idle_percent={size: _rounded(cost) for size, cost in idle.items()},
        load={size: tally.report() for size, tally in last.items()},
    )


def _figures(found: dict[int, list[Costs]], count: int) -> dict[str, float]:
    one, several = (
        {name: statistics.median(cost[name] for cost in found[size]) for name in found[size][0]}
        for size in (1, count)
    )
    ratio = several["servers"] / (one["servers"] or 1)
    return {
        "several_to_one": ratio,
        "times_the_work_of_one": count / (ratio or 1),
        "cpu_ms_one": one["servers"],
        "cpu_ms_several": several["servers"],
        "database_ms_one": one["database"],
        "database_ms_several": several["database"],
        "redis_ms_several": several["redis"],
        "database_cores": count * several["database"] / (several["servers"] or 1),
    }


def _idle_figures(idle: dict[int, Costs], count: int) -> dict[str, float]:
    return {
        "idle_percent_one": idle[1]["servers"],
        "idle_percent_several": idle[count]["servers"],
        "idle_percent_database": idle[count]["database"],
    }


def _rounded(cost: Costs) -> dict[str, float]:
    return {name: round(value, 3) for name, value in cost.items()}


@contextlib.contextmanager
def _services(installation: Installation) -> Iterator[Services]:
    """A PostgreSQL and a Redis of its own, which the installation is told of, with its tables."""
    from tests.services import PostgresServer, RedisServer  # requirements that others do not need

    with PostgresServer() as postgres, RedisServer() as redis:
        installation.settings |= {"DATABASE_URL": postgres.new_database(), "REDIS_URL": redis.url}
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(command, cwd=ROOT, env=installation.environment(), timeout=300, check=True)
        yield Services(postgres.pid, redis.pid)


@contextlib.asynccontextmanager
async def _running(
    installation: Installation, services: Services, count: int, scale: float
) -> AsyncIterator[Fleet]:
    """So many servers, each behind a stretch of load; they have ended at the end."""
    with contextlib.ExitStack() as stack:
        servers = [_server(installation, number) for number in range(count)]
        for server in servers:
            stack.callback(server.stop)
        _make_room(services, count)
        for server in servers:
            server.wait_healthy()
        async with connected([server.port for server in servers], TOKEN) as load:
            await warm_up(load, max(1, round(WARM_UP * count * scale)))
            yield Fleet(servers, services, load)


def _server(installation: Installation, number: int) -> Server:
    server = Server(installation, free_port())
    os.sched_setaffinity(server.child.pid, {_core(number)})
    return server


def _core(number: int) -> int:
    """Each server's own where there are enough; never the rig's where there are two."""
    own = [core for core in usable() if core not in cores()[1]] or list(usable())
    return own[number % len(own)]


def _make_room(services: Services, count: int) -> None:
    """The database is where no server is, and with the rig where nothing is left."""
    left = set(usable()) - {_core(number) for number in range(count)}
    os.sched_setaffinity(services.postgres, left or set(usable()))
