"""The relay between processes over a real channel layer: each call performed once, and told of as
it was."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from channels.layers import get_channel_layer

from onebot.connections import client as module
from onebot.connections.client import AccountLocation, Relay
from onebot.protocol.actions import (
    ActionResponse,
    ActionTimeout,
    ConnectionLost,
    FrameTooLarge,
    NotConnected,
    OneBotError,
)

pytest.importorskip(
    "tests.services", reason="no server wheels for this platform", exc_type=ImportError
)
from tests.environment import PATIENCE
from tests.services import RedisServer

ACCOUNT = "10001"


class Process:
    """One process's end of the relay: what it was given to carry out, and of which places it
    heard."""

    def __init__(self, accounts: dict[str, str]) -> None:
        self.carried: list[str] = []
        self.moved: list[AccountLocation] = []
        self.outcome: ActionResponse | OneBotError = ActionResponse(
            "ok", 0, {"message_id": 1}, None, ""
        )
        self.gate = asyncio.Event()
        self.gate.set()
        self._accounts = accounts
        self.relay = Relay(self._online_accounts, self.moved.append)

    async def _online_accounts(self) -> dict[str, str]:
        return dict(self._accounts)

    async def carry(self, account: str, text: str, echo: str, seconds: float) -> ActionResponse:
        self.carried.append(echo)
        await self.gate.wait()
        if isinstance(self.outcome, OneBotError):
            raise self.outcome
        return ActionResponse(
            self.outcome.status,
            self.outcome.retcode,
            self.outcome.data,
            echo,
            self.outcome.error_text,
        )

    async def heard(self, place_count: int) -> list[AccountLocation]:
        async with asyncio.timeout(PATIENCE):
            while len(self.moved) < place_count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return self.moved


@pytest.fixture
def accounts() -> dict[str, str]:
    """What the database would say of where accounts are."""
    return {}


@pytest.fixture
async def start(
    settings: Any, redis_url: str, accounts: dict[str, str]
) -> AsyncIterator[Callable[..., Awaitable[Process]]]:
    started: list[Process] = []

    async def start(url: str = redis_url) -> Process:
        settings.CHANNEL_LAYERS = {
            "default": {
                "BACKEND": "channels_redis.core.RedisChannelLayer",
                "CONFIG": {"hosts": [{"address": url, "socket_timeout": None}]},
            }
        }
        process = Process(accounts)
        await process.relay.open(process.carry)
        started.append(process)
        return process

    yield start
    for process in started:
        await process.relay.close()
    await get_channel_layer().close_pools()


@pytest.fixture
async def pair(start, accounts) -> tuple[Process, Process]:
    """Two processes; the second one holds the account, and the first one knows that."""
    here, there = await start(), await start()
    accounts[ACCOUNT] = there.relay.channel
    await here.relay.refresh_accounts()
    return here, there


def lose(monkeypatch: pytest.MonkeyPatch, kind: str, count: int) -> list[dict[str, Any]]:
    """Have the layer drop that many messages of a kind; they are added to what is returned."""
    lost: list[dict[str, Any]] = []
    layer = get_channel_layer()
    send = layer.send

    async def send_or_lose(channel: str, message: dict[str, Any]) -> None:
        if message["type"] == kind and len(lost) < count:
            lost.append(message)
        else:
            await send(channel, message)

    monkeypatch.setattr(layer, "send", send_or_lose)
    return lost


async def test_an_action_is_performed_where_the_account_is_and_its_response_comes_back(pair):
    here, there = pair
    response = await here.relay.call(ACCOUNT, "{}", "e1", PATIENCE)
    assert (response.is_success, response.echo, response.data) == (True, "e1", {"message_id": 1})
    assert (here.carried, there.carried) == ([], ["e1"])


@pytest.mark.parametrize("kind", ["call", "answer"])
async def test_what_the_layer_loses_is_carried_again_and_performed_once(pair, monkeypatch, kind):
    here, there = pair
    monkeypatch.setattr(module, "CARRY_AGAIN_SECONDS", 0.05)
    lost = lose(monkeypatch, kind, 2)
    assert (await here.relay.call(ACCOUNT, "{}", "e1", PATIENCE)).is_success
    assert len(lost) == 2
    assert there.carried == ["e1"]


async def test_a_call_that_comes_twice_while_it_is_performed_is_performed_once(pair, monkeypatch):
    here, there = pair
    there.gate.clear()
    call = asyncio.create_task(here.relay.call(ACCOUNT, "{}", "e1", PATIENCE))
    again = {
        "type": "call",
        "account": ACCOUNT,
        "text": "{}",
        "echo": "e1",
        "reply_to": here.relay.channel,
        "seconds": 5,
    }
    await get_channel_layer().send(there.relay.channel, again)
    await get_channel_layer().send(there.relay.channel, {**again, "echo": "e2"})
    async with asyncio.timeout(PATIENCE):
        while "e2" not in there.carried:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    there.gate.set()
    assert (await call).is_success
    assert sorted(there.carried) == ["e1", "e2"]


@pytest.mark.parametrize("kind", [NotConnected, FrameTooLarge, ActionTimeout, ConnectionLost])
async def test_a_failure_in_the_other_process_comes_back_as_what_it_was(pair, kind):
    here, there = pair
    there.outcome = kind("it was so")
    with pytest.raises(kind, match="it was so"):
        await here.relay.call(ACCOUNT, "{}", "e1", PATIENCE)


async def test_an_account_that_is_nowhere_was_surely_not_written_to(pair):
    with pytest.raises(NotConnected):
        await pair[0].relay.call("10002", "{}", "e1", PATIENCE)


async def test_a_layer_that_cannot_be_reached_means_surely_not_written(start, accounts):
    with RedisServer() as redis:
        here = await start(redis.url)
        accounts[ACCOUNT] = "somewhere!else"
        await here.relay.refresh_accounts()
        await asyncio.to_thread(redis.stop)
        with pytest.raises(NotConnected):
            await here.relay.call(ACCOUNT, "{}", "e1", PATIENCE)


async def test_nobody_else_is_given_a_call_that_another_process_may_have_performed(
    pair, accounts, monkeypatch
):
    monkeypatch.setattr(module, "CARRY_AGAIN_SECONDS", 0.05)
    here, there = pair
    there.gate.clear()
    call = asyncio.create_task(here.relay.call(ACCOUNT, "{}", "e1", PATIENCE))
    async with asyncio.timeout(PATIENCE):
        while not there.carried:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
    accounts[ACCOUNT] = "a third!one"
    await here.relay.refresh_accounts()
    with pytest.raises(ConnectionLost):
        await call


async def test_the_other_processes_hear_at_once_where_an_account_has_connected(pair):
    here, there = pair
    here.relay.announce(ACCOUNT, "universal")
    (place,) = await there.heard(1)
    assert (place.account, place.channel, place.role) == (ACCOUNT, here.relay.channel, "universal")
    assert there.relay.is_elsewhere(ACCOUNT)
    assert here.moved == []
