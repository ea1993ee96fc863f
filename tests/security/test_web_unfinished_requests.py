"""Requests that never come to an end hold up nobody else, and do not last."""

import os
import resource
import select
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import pytest

from frostproject.server import daphne_server, http_channel
from frostproject.server.http_channel import (
    HELD,
    HELD_OF_ADDRESS,
    PER_ADDRESS,
    ConnectionPhase,
    HttpConnections,
    peer_client_key,
)
from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.e2e.chat import client
from tests.fake_onebot import spoken
from tests.live_server import HURRIED, LiveServer
from tests.security.wire import answer, ask, connected, head, status

MIB = 2**20
HALF = b"POST /agent/query HTTP/1.1\r\nHost: x\r\n"
ATTACKER = "127.0.0.9"


@pytest.fixture
def server(start_server):
    return start_server()


@pytest.fixture
def many_files(server):
    """Lets this process open thousands of sockets; the server has what it was started with."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    daphne_server.raise_file_limit()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def upgrade(account: int) -> bytes:
    named = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"X-Self-ID: {account}",
    )
    return head(
        "GET",
        "/ws/frostagent",
        *named,
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==",
        f"Authorization: Bearer {TOKEN}",
    )


@pytest.mark.may_block("opens its sockets one by one")
@pytest.mark.usefixtures("many_files")
async def test_a_thousand_half_open_requests_stop_neither_health_nor_bots(server, model):
    model.script(["still here", "me too"])
    async with client(server) as bot:
        with ExitStack() as held:
            for _ in range(1_100):
                connection = held.enter_context(connected(server, ATTACKER))
                with suppress(ConnectionError):  # ended already
                    connection.sendall(HALF)
            await bot.say_private(fresh_id(), "hi")
            assert spoken(await bot.next_action()) == "still here"
            assert server.is_healthy()
            async with client(server) as newcomer:
                await newcomer.say_private(fresh_id(), "hi")
                assert spoken(await newcomer.next_action()) == "me too"


def test_of_one_address_no_more_than_fifty_unfinished_requests_are_kept(server):
    with ExitStack() as held:
        half_open = [
            held.enter_context(connected(server, ATTACKER)) for _ in range(2 * PER_ADDRESS)
        ]
        for connection in half_open:
            connection.sendall(HALF)
        for connection in half_open[:PER_ADDRESS]:
            answer(connection)  # the older half is ended
        assert not select.select(half_open[PER_ADDRESS:], [], [], 0)[0]
        assert status(ask(server, head("GET", "/health", "Connection: close"), ATTACKER)) == 200


def test_established_sockets_are_not_counted(server):
    with ExitStack() as held:
        bots = [held.enter_context(connected(server, ATTACKER)) for _ in range(2 * PER_ADDRESS)]
        for bot in bots:
            bot.sendall(upgrade(fresh_id()))
        assert {status(bot.recv(65536)) for bot in bots} == {101}
        half_open = [
            held.enter_context(connected(server, ATTACKER)) for _ in range(PER_ADDRESS + 1)
        ]
        answer(half_open[0])  # it was looked who is too many
        for bot in bots:
            bot.setblocking(False)
            with suppress(BlockingIOError):
                assert bot.recv(65536)


def test_a_head_that_drips_is_given_up(model_server):
    """Also one that follows a whole request, and one of which not a byte comes."""
    with (
        LiveServer(scripted_env(model_server), limits=HURRIED) as server,
        connected(server) as dripping,
        connected(server) as second,
        connected(server) as silent,
    ):
        second.sendall(head("GET", "/health"))
        assert status(second.recv(65536)) == 200
        second.sendall(b"G")
        open_still = {dripping, second, silent}
        replies = {}
        while open_still:
            for connection in select.select(list(open_still), [], [], 0.5)[0]:
                replies[connection] = status(answer(connection))
                open_still.remove(connection)
            if dripping in open_still:
                dripping.sendall(b"X")
        assert replies == {dripping: 408, second: 408, silent: 408}


def test_the_limit_of_descriptors_is_raised_as_far_as_it_may_be(server):
    soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, daphne_server.WANTED_DESCRIPTORS)
    assert (
        len(os.listdir(f"/proc/{server.pid}/fd")) < daphne_server.RESERVED_DESCRIPTORS
    )  # what the reserve is there for


@pytest.mark.parametrize(
    ("soft", "held"), [(1_024, 384), (65_536, 1_000), (resource.RLIM_INFINITY, 1_000), (256, 16)]
)
def test_connections_leave_a_reserve_of_descriptors(monkeypatch, soft, held):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, soft))
    assert daphne_server.http_connection_limit() == held


# --- The judge by itself --------------------------------------------------------


class Caller:
    """A connection that only stands and is watched."""

    def __init__(
        self,
        phase: ConnectionPhase,
        address: str = "192.0.2.1",
        since: float = 0.0,
        received: int = 0,
    ) -> None:
        self.phase, self.address, self.since = phase, address, since
        self.received = lambda: received
        self.is_cut = self.is_given_up = False
        self.persistent = True
        self.transport = self

    def give_up(self) -> None:
        self.is_given_up = True

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        self.is_cut = True


def watched(monkeypatch, now: float, *connections: Caller, most: int = 1_000) -> HttpConnections:
    monkeypatch.setattr(http_channel, "time", SimpleNamespace(monotonic=lambda: now))
    judge = HttpConnections(most)
    for connection in connections:
        judge.add(connection)
    judge.look_after()
    return judge


@pytest.mark.parametrize(
    ("phase", "seconds", "received", "is_given_up"),
    [
        (ConnectionPhase.HEAD, 14, 0, False),
        (ConnectionPhase.HEAD, 16, 0, True),
        (ConnectionPhase.BODY, 59, 0, False),
        (ConnectionPhase.BODY, 61, 0, True),
        (ConnectionPhase.BODY, 61, MIB, False),
        (ConnectionPhase.BODY, 600, 80 * MIB, False),
        (ConnectionPhase.BODY, 600, 20 * MIB, True),
        (ConnectionPhase.HANDSHAKE, 21, 0, True),
        (ConnectionPhase.ANSWER, 86_400, 0, False),
    ],
)
def test_what_takes_too_long_is_given_up(monkeypatch, phase, seconds, received, is_given_up):
    caller = Caller(phase, received=received)
    watched(monkeypatch, seconds, caller)
    assert caller.is_given_up is is_given_up


def test_peers_without_an_address_are_bounded_only_in_all(monkeypatch):
    local = [Caller(ConnectionPhase.HEAD, "") for _ in range(2 * PER_ADDRESS)]
    judge = watched(monkeypatch, 5, *local, most=len(local))
    assert not any(caller.is_cut for caller in local)
    assert judge.has_room()
    assert sum(caller.is_cut for caller in local) == 1


def test_clients_that_come_back_all_at_once_are_let_in(monkeypatch):
    crowd = [Caller(ConnectionPhase.HANDSHAKE, since=10) for _ in range(3 * PER_ADDRESS)]
    watched(monkeypatch, 10.5, *crowd)
    assert not any(caller.is_cut for caller in crowd)


def test_room_is_made_by_who_has_an_answer_then_by_the_largest_crowd_and_never_by_who_waits_for_one(
    monkeypatch,
):
    honest, waiting, idle = (
        Caller(ConnectionPhase.HEAD, "192.0.2.7"),
        Caller(ConnectionPhase.ANSWER),
        Caller(ConnectionPhase.IDLE, since=4),
    )
    crowd = [Caller(ConnectionPhase.HEAD, "192.0.2.9", since=number) for number in (2, 1)]
    judge = watched(monkeypatch, 5, honest, waiting, idle, *crowd, most=5)
    assert judge.has_room()
    assert idle.is_cut
    judge.add(Caller(ConnectionPhase.ANSWER))
    assert judge.has_room()
    assert (honest.is_cut, waiting.is_cut, crowd[0].is_cut, crowd[1].is_cut) == (
        False,
        False,
        False,
        True,
    )
    assert not watched(monkeypatch, 5, Caller(ConnectionPhase.ANSWER), most=1).has_room()


def test_bodies_are_bounded_for_an_address_and_in_all():
    judge = HttpConnections(10)
    assert judge.hold("192.0.2.1", HELD_OF_ADDRESS, is_small=True)
    assert not judge.hold("192.0.2.1", 1, is_small=True)
    assert judge.hold("", HELD - HELD_OF_ADDRESS, is_small=True)
    assert not judge.hold("192.0.2.2", 1, is_small=True)
    judge.release("192.0.2.1", HELD_OF_ADDRESS)
    assert judge.hold("192.0.2.2", 1, is_small=True)


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        (None, ""),
    ],
)
def test_an_ipv6_network_counts_as_one_address(host, counted):
    assert (
        peer_client_key(
            SimpleNamespace(host=host) if host else SimpleNamespace(name=b"/run/socket")
        )
        == counted
    )


def test_at_the_end_of_the_server_nobody_asks_for_more_and_what_is_answered_stays(monkeypatch):
    callers = {phase: Caller(phase) for phase in ConnectionPhase}
    watched(monkeypatch, 0.0, *callers.values()).take_no_more()
    assert {phase.name for phase, caller in callers.items() if caller.is_cut} == {
        *("HEAD", "BODY", "HANDSHAKE", "IDLE")
    }
    assert [phase.name for phase, caller in callers.items() if not caller.persistent] == ["ANSWER"]
