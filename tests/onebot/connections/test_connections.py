"""Which socket belongs to which account: the newest wins, and the older one's end changes
nothing."""

import asyncio
from typing import Any

import pytest

from onebot.connections.client import Connections, Socket
from onebot.connections.handshake import Role

ACCOUNT = "10001"


def socket(role: Role = "universal") -> Socket:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    return Socket(send, role)


def test_a_newer_socket_of_the_same_role_replaces_the_older():
    connections, old, new = Connections(), socket(), socket()
    assert connections.attach(ACCOUNT, old) is None
    assert connections.attach(ACCOUNT, new) is old
    assert connections.action_socket(ACCOUNT) is new


def test_the_end_of_a_replaced_socket_does_not_take_the_account_offline():
    connections, old, new = Connections(), socket(), socket()
    connections.attach(ACCOUNT, old)
    connections.attach(ACCOUNT, new)
    assert not connections.detach(ACCOUNT, old)
    assert connections.action_socket(ACCOUNT) is new


def test_the_last_socket_to_end_takes_the_account_offline():
    connections, api, event = Connections(), socket("api"), socket("event")
    connections.attach(ACCOUNT, api)
    connections.attach(ACCOUNT, event)
    assert not connections.detach(ACCOUNT, api)
    assert connections.detach(ACCOUNT, event)
    assert not connections.accounts


def test_two_roles_of_one_account_stand_side_by_side():
    connections, api, event = Connections(), socket("api"), socket("event")
    assert connections.attach(ACCOUNT, api) is None
    assert connections.attach(ACCOUNT, event) is None
    assert list(connections.accounts[ACCOUNT].sockets) == ["api", "event"]


@pytest.mark.parametrize("order", [("api", "event"), ("event", "api")])
def test_actions_never_go_to_an_event_socket(order):
    connections = Connections()
    for role in order:
        connections.attach(ACCOUNT, socket(role))
    found = connections.action_socket(ACCOUNT)
    assert found is not None
    assert found.role == "api"


def test_an_account_with_an_event_socket_alone_takes_no_actions():
    connections = Connections()
    connections.attach(ACCOUNT, socket("event"))
    assert connections.action_socket(ACCOUNT) is None


def test_actions_go_to_the_newest_socket_that_is_open():
    connections, universal, api = Connections(), socket(), socket("api")
    connections.attach(ACCOUNT, universal)
    connections.attach(ACCOUNT, api)
    assert connections.action_socket(ACCOUNT) is api
    api.is_open = False
    assert connections.action_socket(ACCOUNT) is universal


def test_a_socket_that_was_never_attached_ends_unnoticed():
    assert not Connections().detach(ACCOUNT, socket())


def test_accounts_do_not_share_sockets():
    connections = Connections()
    connections.attach(ACCOUNT, socket())
    assert connections.action_socket("10002") is None


async def test_waiting_ends_when_a_socket_for_actions_comes():
    connections = Connections()
    waiting = asyncio.create_task(connections.wait(ACCOUNT, 5))
    await asyncio.sleep(0)
    connections.attach(ACCOUNT, socket("event"))
    await asyncio.sleep(0)
    assert not waiting.done()
    connections.attach(ACCOUNT, socket("api"))
    assert await waiting


async def test_all_who_wait_for_an_account_are_woken():
    connections = Connections()
    waiting = [asyncio.create_task(connections.wait(ACCOUNT, 5)) for _ in range(3)]
    await asyncio.sleep(0)
    connections.attach(ACCOUNT, socket())
    assert await asyncio.gather(*waiting) == [True, True, True]


async def test_waiting_in_vain_ends_with_the_time():
    assert not await Connections().wait(ACCOUNT, 0.01)


async def test_thousands_of_reconnects_leave_nothing_behind():
    connections = Connections()
    for _ in range(5_000):
        new = socket()
        connections.attach(ACCOUNT, new)
        connections.detach(ACCOUNT, new)
    assert not connections.accounts
