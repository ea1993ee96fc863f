"""The guards of the suite: that they see what they are for, and nothing else."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connection

from tests.conftest import _is_live, network
from tests.environment import PROJECT
from tests.guards import LoopWatch, OffMachineError, Queued, Spent, stall

HERE = (Path(__file__).parent,)


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("example.com", 80), ("10.0.0.1", 80)])
def test_connecting_beyond_loopback_is_refused_and_remembered(address):
    with socket.socket() as sock, pytest.raises(OffMachineError):
        sock.connect(address)
    assert address[0] in network.taken_attempts()[0]


async def test_a_loop_connection_beyond_loopback_is_refused():
    with pytest.raises(OffMachineError):
        await asyncio.open_connection("192.0.2.1", 80)
    assert len(network.taken_attempts()) == 1


def test_a_name_lookup_is_refused():
    with pytest.raises(OffMachineError):
        socket.getaddrinfo("example.com", 443)
    assert network.taken_attempts() == ["getaddrinfo example.com"]


def test_a_datagram_beyond_loopback_is_refused():
    with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(OffMachineError):
        sock.sendto(b"x", ("192.0.2.1", 9))
    assert len(network.taken_attempts()) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_left_alone(host):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection((host, server.getsockname()[1])).close()
    assert network.taken_attempts() == []


def watched(*roots: Path) -> LoopWatch:
    return LoopWatch(roots=roots or HERE, limit=0.1, tick=0.01)


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def compute_in_one_call(seconds: float) -> None:
    """No other thread runs before it is over."""
    began, _ = time.thread_time(), sum(range(1_000_000))
    sum(range(int(2_000_000 * seconds / (time.thread_time() - began))))


@pytest.mark.may_block("the stall is the subject")
async def test_a_waiting_callback_is_reported_with_its_place():
    for _ in range(5):  # as below
        with watched() as watch:
            await asyncio.sleep(0)
            time.sleep(0.3)  # noqa: ASYNC251
            await asyncio.sleep(0)
        if watch.stalls:
            break
    assert re.search(r"stood still .*test_guards", watch.stalls[0], re.DOTALL)
    assert "time.sleep(0.3)" in watch.stalls[0]


@pytest.mark.may_block("the stall is the subject")
@pytest.mark.parametrize("work", [compute, compute_in_one_call])
async def test_a_computing_callback_is_reported_with_its_place(work):
    for _ in range(5):  # what others took of a busy machine is not counted
        with watched() as watch:
            await asyncio.sleep(0)
            work(0.3)
            await asyncio.sleep(0)
        if watch.stalls:
            break
    assert len(watch.stalls) == 1
    assert f"in {work.__name__}" in watch.stalls[0]


async def test_waiting_without_blocking_is_no_stall():
    with watched() as watch:
        await asyncio.sleep(0.15)
    assert watch.stalls == []


@pytest.mark.parametrize(
    ("spent", "queued", "seconds"),
    [
        (Spent(wall=0.01, computed=0.01), Queued(), 0.01),
        (Spent(wall=0.5, computed=0.4), Queued(), 0.4),
        (Spent(wall=0.5, computed=0.4), Queued(watcher=0.4), 0.1),
        (Spent(wall=0.5, computed=0.4, collected=0.35), Queued(), 0.05),
        (Spent(wall=0.5, computed=0.0), Queued(), 0.01),
        (Spent(wall=0.01, computed=0.0), Queued(watched=0.008), 0.002),
        (Spent(wall=0.01, computed=0.0, others=0.01), Queued(), 0.0),
    ],
    ids=[
        "computing",
        "one long call",
        "busy machine",
        "collecting",
        "a late look",
        "no core",
        "another thread",
    ],
)
def test_only_what_is_proven_counts(spent, queued, seconds):
    assert stall(spent, queued, tick=0.01) == pytest.approx(seconds)


def test_the_suite_runs_on_its_own_settings():
    assert os.environ["DJANGO_SETTINGS_MODULE"] == "tests.settings"
    assert settings.DATA_DIR.name.startswith("frost-tests-")


def test_a_test_that_asks_for_servers_is_live_and_others_are_not(request):
    assert request.node.get_closest_marker("live") is None
    requested: Any = SimpleNamespace(
        path=request.node.path, fixturenames=["tmp_path", "start_server"]
    )
    assert _is_live(requested)


@pytest.mark.django_db(transaction=True)
def test_the_test_database_is_a_file():
    if connection.vendor == "sqlite":
        assert Path(str(connection.settings_dict["NAME"])).is_file()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [1, 2])
def test_what_a_test_committed_is_gone_in_the_next_and_permissions_are_there(turn):
    assert not User.objects.exists()
    assert Permission.objects.filter(codename="view_user").exists()
    User.objects.create(username="left over")


@pytest.mark.django_db
async def test_an_async_test_of_the_database_has_real_transactions(request):
    assert request.node.get_closest_marker("django_db").kwargs == {"transaction": True}
    assert not connection.in_atomic_block


GUARDED = """
import asyncio, contextlib, socket
import pytest
import onebot.models

def test_copes_with_having_no_network():
    with contextlib.suppress(OSError):
        socket.create_connection(("192.0.2.1", 80))

def block():
    exec(compile("import time; time.sleep(0.5)", onebot.models.__file__, "exec"))

async def test_blocks():
    block()
    await asyncio.sleep(0)

@pytest.mark.may_block("on purpose")
async def test_may_block():
    block()
    await asyncio.sleep(0)
"""


@pytest.mark.slow
def test_guarded_tests_fail_even_when_the_code_copes(tmp_path):
    (tmp_path / "test_guarded.py").write_text(GUARDED)
    options = [
        "-p",
        "tests.conftest",
        "--ds=tests.settings",
        "-o",
        "asyncio_mode=auto",
        "-p",
        "no:cacheprovider",
    ]
    command = [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(tmp_path)]
    output = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False
    ).stdout
    assert "3 passed, 2 errors" in output, output
    assert "tried to leave this machine: [\"connect ('192.0.2.1', 80)\"]" in output
    assert "the event loop stood still" in output
