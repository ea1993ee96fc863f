"""The faults: each happens to a running world and is over when its function returns."""

import asyncio
import random
import resource
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import get_args

from chaos.process import ChaosServer
from chaos.world import World
from tools.processes.crash_points import CrashPoint

#: What the log may grow by while files may not, in bytes; SQLite's log of pages is longer than the
#: server's.
LOG_ROOM = 128 * 1024
#: How long a server that is told to die at a named point is waited for, in seconds.
DEATH_SECONDS = 15.0

Strike = Callable[[World, random.Random], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """``excuses``: somebody may have been cut off in the midst of a send, whose outcome nobody can
    know then."""

    strike: Strike
    excuses: bool = False

    @property
    def about(self) -> str:
        return (self.strike.__doc__ or "").splitlines()[0]


# --- Ends of processes ------------------------------------------------------------------


async def kill(world: World, chance: random.Random) -> None:
    """SIGKILL, and a new start a moment later."""
    await _end(world, chance, signal.SIGKILL)


async def terminate(world: World, chance: random.Random) -> None:
    """SIGTERM, and a new start a moment later."""
    await _end(world, chance, signal.SIGTERM)


async def kill_and_stay_away(world: World, chance: random.Random) -> None:
    """SIGKILL of one process, which comes back only after the others have taken over."""
    server, away = _victim(world, chance), chance.uniform(8, 12)
    await server.end(signal.SIGKILL)
    world.ends += 1
    await asyncio.sleep(away)
    await server.begin()


def dying_at(point: CrashPoint) -> Strike:
    """A fault: a life that ends at ``point``."""

    async def die(world: World, chance: random.Random) -> None:
        server = _victim(world, chance)
        await server.end(signal.SIGKILL)
        with suppress(AssertionError):  # it may be dead before it was seen alive
            await server.begin(FROST_FAULT=point)
        world.ends += 1
        await _gather_at(world, server)
        if not await server.died(DEATH_SECONDS):
            world.notes.append(f"nothing came to {point} within {DEATH_SECONDS:g} s")
            await server.end(signal.SIGKILL)
        world.ends += 1
        await server.begin()

    die.__doc__ = f"A life that ends at the named point {point}."
    return die


def _victim(world: World, chance: random.Random) -> ChaosServer:
    """A server that a client is connected to."""
    return world.servers[chance.choice(world.accounts).home]


async def _gather_at(world: World, server: ChaosServer) -> None:
    """Have every client come to ``server``, so that it has something to do."""
    home = world.servers.index(server)
    for account in world.accounts:
        if account.home != home:
            await account.hop(home)


async def _end(world: World, chance: random.Random, number: signal.Signals) -> None:
    server, away = _victim(world, chance), chance.uniform(0, 1)
    await server.end(number)
    world.ends += 1
    await asyncio.sleep(away)
    await server.begin()


async def sleep_past_the_lease(world: World, chance: random.Random) -> None:
    """SIGSTOP of one process until it is taken for dead; its clients go elsewhere; then SIGCONT."""
    server, asleep = _victim(world, chance), chance.uniform(9, 12)
    number = world.servers.index(server)
    server.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(0.5)
        for account in world.accounts:
            if account.home == number:
                account.flee((number + 1) % len(world.servers))
        await asyncio.sleep(asleep)
    finally:
        server.signal(signal.SIGCONT)
    await asyncio.sleep(3)


# --- The embedded database ----------------------------------------------------------------


async def fill_the_disk(world: World, chance: random.Random) -> None:
    """No file of the server may grow, so that commits fail; now and then there is room for a
    moment, and then for good."""
    (server,) = world.servers
    for _ in range(4):
        full, room = chance.uniform(0.5, 2.5), chance.uniform(0.1, 0.6)
        with _no_room(server):
            await asyncio.sleep(full)
        await asyncio.sleep(room)


async def fill_the_disk_for_long(world: World, chance: random.Random) -> None:
    """No file of the server may grow for longer than any commit is tried again."""
    (server,) = world.servers
    with _no_room(server):
        await asyncio.sleep(chance.uniform(18, 24))
        if await world.ready(server) == 200:
            world.complaints.append(("false_ready", "/ready was 200 with a full disk"))


@contextmanager
def _no_room(server: ChaosServer) -> Iterator[None]:
    soft, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (len(server.log.encode()) + LOG_ROOM, hard))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (soft, hard))


async def lock_the_database(world: World, chance: random.Random) -> None:
    """Somebody else holds the write lock for some seconds."""
    (server,) = world.servers
    file = server.data_dir / "frostagent.sqlite3"
    with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        await asyncio.sleep(chance.uniform(3, 8))
        connection.execute("ROLLBACK")


# --- Services -------------------------------------------------------------------------------


async def restart_postgres_fast(world: World, _chance: random.Random) -> None:
    """PostgreSQL ends every connection in order and starts again."""
    await asyncio.to_thread(world.postgres.restart, "fast")


async def restart_postgres_at_once(world: World, _chance: random.Random) -> None:
    """PostgreSQL ends as in a crash and starts again."""
    await asyncio.to_thread(world.postgres.restart, "immediate")


async def stop_postgres(world: World, chance: random.Random) -> None:
    """PostgreSQL is down for some seconds.

    What waits for it is in the memory of the processes: nobody is killed before they have written
    it.
    """
    await asyncio.to_thread(world.postgres.stop, "fast")
    try:
        await asyncio.sleep(chance.uniform(5, 25))
    finally:
        await asyncio.to_thread(world.postgres.start)
    await world.recovered()


async def cut_at_commit(world: World, chance: random.Random) -> None:
    """The connection is cut right before or right behind a COMMIT, mostly behind."""
    await asyncio.sleep(chance.uniform(0, 0.5))
    world.cutter.want("before" if chance.random() < 0.25 else "behind")
    await world.cutter.is_cut(60)


async def stop_redis(world: World, chance: random.Random) -> None:
    """Redis is down for some seconds while clients change processes, so that answers have to be
    passed on."""
    await hop(world, chance)
    await asyncio.sleep(chance.uniform(0, 0.3))
    await asyncio.to_thread(world.redis.stop)
    try:
        await asyncio.sleep(1)
        await hop(world, chance)
        await asyncio.sleep(chance.uniform(1, 3))
    finally:
        await asyncio.to_thread(world.redis.start)
    await hop(world, chance)


# --- Clients ----------------------------------------------------------------------------------


async def hop(world: World, chance: random.Random) -> None:
    """Every client closes its connection in order and dials in to another process."""
    steps = [chance.randint(1, max(1, len(world.servers) - 1)) for _ in world.accounts]
    for account, step in zip(world.accounts, steps, strict=True):
        await account.hop((account.home + step) % len(world.servers))


async def drop_connections(world: World, chance: random.Random) -> None:
    """Every client's connection is cut and made anew."""
    for account in world.accounts:
        account.flee(chance.randrange(len(world.servers)))


async def leave_a_dead_socket(world: World, chance: random.Random) -> None:
    """A client goes deaf and mute without closing, and dials in once more beside that."""
    chance.choice(world.accounts).hang()


async def fail_the_first_endpoint(world: World, chance: random.Random) -> None:
    """The model's first endpoint fails for some seconds; the second answers."""
    before = world.model.second_calls
    world.model.is_down = True
    try:
        await asyncio.sleep(chance.uniform(2, 4))
    finally:
        world.model.is_down = False
    if world.model.second_calls == before:
        world.notes.append("the second endpoint was not asked while the first failed")


async def go_on(_world: World, chance: random.Random) -> None:
    """Nothing but the load itself, for some seconds."""
    await asyncio.sleep(chance.uniform(2, 4))


KILL, TERMINATE = Fault(kill, excuses=True), Fault(terminate, excuses=True)
#: But for that of reminders, of which the load has none.
_POINTS = [
    point for point in get_args(CrashPoint) if point not in ("reminder_fired", "request_claimed")
]
NAMED_POINTS = tuple(Fault(dying_at(point), excuses=True) for point in _POINTS)
KILL_FOR_LONG, SLEEP = (
    Fault(kill_and_stay_away, excuses=True),
    Fault(sleep_past_the_lease, excuses=True),
)
DISK_FULL, DISK_FULL_FOR_LONG, LOCKED = (
    Fault(fill_the_disk),
    Fault(fill_the_disk_for_long),
    Fault(lock_the_database),
)
POSTGRES_FAST, POSTGRES_AT_ONCE = Fault(restart_postgres_fast), Fault(restart_postgres_at_once)
POSTGRES_DOWN, COMMIT_CUT, REDIS_DOWN = (
    Fault(stop_postgres),
    Fault(cut_at_commit),
    Fault(stop_redis, excuses=True),
)
HOP, DROP, DEAD_SOCKET = (
    Fault(hop),
    Fault(drop_connections, excuses=True),
    Fault(leave_a_dead_socket, excuses=True),
)
ENDPOINT_DOWN, LOAD_ALONE = Fault(fail_the_first_endpoint), Fault(go_on)
