"""Actions in flight: each is answered by its own echo, on whatever socket the answer comes."""

import asyncio
import json
from typing import Any

import pytest

from onebot.connections import client as calls_module
from onebot.connections.client import PendingActions, Socket
from onebot.protocol.actions import (
    ActionResponse,
    ActionTimeout,
    ConnectionLost,
    NotConnected,
    parse_response,
)

ACCOUNT = "10001"


class Wire:
    """A socket that keeps what is written to it."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.socket = Socket(self._send, "universal")

    async def _send(self, message: dict[str, Any]) -> None:
        self.written.append(message["text"])


def answer(echo: Any, retcode: int = 0) -> ActionResponse:
    return parse_response({"status": "ok", "retcode": retcode, "data": None, "echo": echo})


async def started(
    calls: PendingActions, wire: Wire, echo: str, seconds: float = 5
) -> "asyncio.Task[ActionResponse]":
    """A call that has been written to ``wire``."""
    task = asyncio.create_task(
        calls.call(ACCOUNT, wire.socket, json.dumps({"echo": echo}), echo, seconds)
    )
    await asyncio.sleep(0)
    assert json.loads(wire.written[-1]) == {"echo": echo}
    return task


async def test_an_answer_reaches_the_call_with_its_echo():
    calls, wire = PendingActions(), Wire()
    task = await started(calls, wire, "e-1")
    assert calls.resolve(ACCOUNT, answer("e-1"))
    assert (await task).echo == "e-1"


async def test_a_hundred_answers_in_reverse_order_each_reach_their_call():
    calls, wire = PendingActions(), Wire()
    tasks = {echo: await started(calls, wire, echo) for echo in (f"e-{n}" for n in range(100))}
    for echo in reversed(tasks):
        assert calls.resolve(ACCOUNT, answer(echo))
    assert [response.echo for response in await asyncio.gather(*tasks.values())] == list(tasks)


async def test_of_two_answers_with_one_echo_the_first_counts():
    calls, wire = PendingActions(), Wire()
    task = await started(calls, wire, "e-1")
    assert calls.resolve(ACCOUNT, answer("e-1", retcode=0))
    assert calls.resolve(ACCOUNT, answer("e-1", retcode=1200))
    assert (await task).retcode == 0
    assert not calls.resolve(ACCOUNT, answer("e-1"))


@pytest.mark.parametrize("echo", ["e-2", "", None, 1, {"seq": 1}])
async def test_an_answer_with_another_echo_reaches_nobody(echo):
    calls, wire = PendingActions(), Wire()
    task = await started(calls, wire, "e-1")
    assert not calls.resolve(ACCOUNT, answer(echo))
    assert not task.done()
    task.cancel()


async def test_another_account_cannot_answer():
    calls, wire = PendingActions(), Wire()
    task = await started(calls, wire, "e-1")
    assert not calls.resolve("10002", answer("e-1"))
    assert not task.done()
    task.cancel()


async def test_silence_ends_with_the_time():
    calls, wire = PendingActions(), Wire()
    with pytest.raises(ActionTimeout, match=r"within 0\.01 s"):
        await calls.call(ACCOUNT, wire.socket, "{}", "e-1", 0.01)
    assert not calls.resolve(ACCOUNT, answer("e-1"))


async def test_nothing_is_written_to_a_closed_socket():
    calls, wire = PendingActions(), Wire()
    wire.socket.is_open = False
    with pytest.raises(NotConnected):
        await calls.call(ACCOUNT, wire.socket, "{}", "e-1", 5)
    assert not wire.written


async def test_the_answer_may_come_after_the_socket_has_ended():
    calls, wire = PendingActions(), Wire()
    task = await started(calls, wire, "e-1")
    calls.socket_ended(wire.socket)
    await asyncio.sleep(0)
    assert calls.resolve(ACCOUNT, answer("e-1"))
    assert (await task).is_success


async def test_a_call_whose_socket_ended_is_given_up_after_a_while(monkeypatch):
    monkeypatch.setattr(calls_module, "GRACE_SECONDS", 0.01)
    calls, wire, other = PendingActions(), Wire(), Wire()
    task, lasting = await started(calls, wire, "e-1"), await started(calls, other, "e-2")
    calls.socket_ended(wire.socket)
    with pytest.raises(ConnectionLost):
        await task
    assert not lasting.done()
    lasting.cancel()


async def test_a_cancelled_call_is_forgotten():
    calls, wire = PendingActions(), Wire()
    task = await started(calls, wire, "e-1")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not calls.resolve(ACCOUNT, answer("e-1"))
