"""Alerts that reach somebody: a real server, a webhook, kills and several processes."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import file_server as files
from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.brisk import BriskServer
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.test_refusing_database import full_disk
from tests.live_server import LiveServer

HASTE = {"heartbeat": 0.1, "alert_look": 0.1, "alert_hold": 0.5, "lease": 2.0}
ADD = "/admin/agent/alertroute/add/"
FORM = {
    "name": "hook",
    "enabled": "on",
    "kind": "webhook",
    "quiet_hours": "",
    "alerts": "disconnected",
}


@pytest.fixture
def server(model_server: Any) -> Iterator[LiveServer]:
    env = scripted_env(model_server) | {"FETCH_ALLOW": "127.0.0.1", "LANGUAGE_CODE": "en"}
    with LiveServer(env, limits=HASTE) as started:
        yield started


def add_route(server: LiveServer, **values: Any) -> None:
    cockpit = Cockpit(server)
    cockpit.save(ADD, FORM | values)
    cockpit.close()


def told(file_server: Any) -> list[tuple[str, str]]:
    return [(one["state"], one["account"]) for one in map(json.loads, bodies(file_server))]


def bodies(file_server: Any) -> list[bytes]:
    return [one.body for one in file_server.requests]


async def test_an_account_that_is_gone_is_told_of_once_and_so_is_its_return(server, file_server):
    add_route(server, address=file_server.serve("/hook", files.sends(b"ok")))
    account = fresh_id()
    async with client(server, account):
        pass
    await file_server.wait_for_requests(1)
    async with client(server, account):
        await file_server.wait_for_requests(2)
    assert told(file_server) == [("firing", str(account)), ("resolved", str(account))]
    await server.row("SELECT 1 FROM agent_alertroute WHERE outcome = 'told'")


async def test_what_was_claimed_by_a_process_that_was_killed_is_not_sent_again(server, file_server):
    server.restart(FROST_FAULT="alert_claimed")
    add_route(server, address=file_server.serve("/hook", files.sends(b"ok")))
    async with client(server, fresh_id()):
        pass
    assert await asyncio.to_thread(server.exit_code, 20) == -9
    (row,) = server.rows("SELECT outcome FROM agent_alertroute")
    server.env["FROST_FAULT"] = ""
    await asyncio.to_thread(server.start)
    later = fresh_id()
    async with client(server, later):
        pass
    await file_server.wait_for_requests(1)
    assert (row["outcome"], told(file_server)) == ("unknown", [("firing", str(later))])


async def test_a_database_that_is_away_is_told_of_meanwhile_and_so_is_its_return(
    server, file_server
):
    address = file_server.serve("/hook", files.sends(b"ok"))
    add_route(server, address=address, alerts=["disconnected", "outage"])
    async with client(server, fresh_id()):
        pass
    await file_server.wait_for_requests(1)  # so it knows its routes
    async with client(server, fresh_id()) as bot:
        async with full_disk(server):
            await bot.say_private(fresh_id(), "something to write")
            await file_server.wait_for_requests(2)
        await file_server.wait_for_requests(3)
    kinds = [json.loads(one)["kind"] for one in bodies(file_server)]
    assert kinds == ["disconnected", "outage", "outage"]
    assert [state for state, _ in told(file_server)] == ["firing", "firing", "resolved"]


async def test_owners_are_told_by_another_account_that_theirs_is_gone(server):
    gone, here, owner = fresh_id(), fresh_id(), fresh_id()
    async with client(server, here) as bot:
        async with client(server, gone):
            await server.row("SELECT 1 FROM onebot_bot WHERE self_id = ?", str(gone))
            cockpit = Cockpit(server)
            cockpit.own(gone, str(owner))
            cockpit.close()
            add_route(server, kind="owners")
        action = await bot.next_action()
    assert (action["action"], action["params"]["user_id"]) == ("send_private_msg", owner)
    assert str(gone) in json.dumps(action)


async def test_of_two_processes_one_tells(model_server, postgres_url, file_server):
    env = scripted_env(model_server) | {"FETCH_ALLOW": "127.0.0.1", "DATABASE_URL": postgres_url}
    limits = {**BriskServer.limits, **HASTE}
    first, second = BriskServer(env, limits=limits), BriskServer(env, limits=limits)
    with contextlib.ExitStack() as started:
        for one in (first, second):
            started.callback(one.remove)
        await asyncio.to_thread(first.migrate)
        await asyncio.to_thread(first.start)
        second.data_dir.mkdir(mode=0o700, exist_ok=True)
        (second.data_dir / "secret_key").write_text((first.data_dir / "secret_key").read_text())
        await asyncio.to_thread(second.start)
        add_route(first, address=file_server.serve("/hook", files.sends(b"ok")))
        account, other = fresh_id(), fresh_id()
        async with client(second, account):
            pass
        await file_server.wait_for_requests(1)
        first.kill()
        async with client(second, other):
            pass
        await file_server.wait_for_requests(2)
    assert told(file_server) == [("firing", str(account)), ("firing", str(other))]
