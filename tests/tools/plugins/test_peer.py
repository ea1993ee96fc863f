"""The two ends of the pipes: what is asked is answered, whatever else is on the wire."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

import msgpack
import pytest

from tests.environment import PATIENCE
from tools.plugin_sdk.calls import RpcError
from tools.plugins import peer as peers
from tools.plugins.peer import (
    MOST_BYTES,
    RequestHandler,
    RpcPeer,
    encode_request,
    encode_response,
    open_pipe_streams,
)


async def echo(method: str, payload: Any) -> Any:
    return [method, payload]


class Wire:
    """Two pipes with a peer at one end; the other end is a peer as well, or raw bytes."""

    def __init__(self) -> None:
        self.to_here, self.to_there = os.pipe(), os.pipe()

    async def here(self, handle: RequestHandler = echo) -> RpcPeer:
        return RpcPeer(*await open_pipe_streams(self.to_here[0], self.to_there[1]), handle)

    async def there(self, handle: RequestHandler = echo) -> RpcPeer:
        return RpcPeer(*await open_pipe_streams(self.to_there[0], self.to_here[1]), handle)


@contextlib.asynccontextmanager
async def running(*both: RpcPeer) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(peer.run()) for peer in both]
    try:
        yield
    finally:
        for peer in both:
            peer.close()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)


@contextlib.asynccontextmanager
async def asking(handle: RequestHandler) -> AsyncIterator[RpcPeer]:
    """A peer whose other side answers with ``handle``."""
    wire = Wire()
    here, there = await wire.here(), await wire.there(handle)
    async with running(here, there):
        yield here


@contextlib.asynccontextmanager
async def against_bytes(
    handle: RequestHandler = echo,
) -> AsyncIterator[tuple[RpcPeer, asyncio.Task[RpcError], Any, Any]]:
    """A peer, its run, and the raw streams of the other side."""
    wire = Wire()
    here = await wire.here(handle)
    reader, writer = await open_pipe_streams(wire.to_there[0], wire.to_here[1])
    run = asyncio.create_task(here.run())
    try:
        yield here, run, reader, writer
    finally:
        writer.close()
        here.close()
        await asyncio.wait_for(run, PATIENCE)


async def raised_by(awaitable: Any) -> str:
    with pytest.raises(RpcError) as caught:
        await awaitable
    return str(caught.value.code)


async def test_both_sides_can_ask_at_the_same_time():
    wire = Wire()
    here, there = await wire.here(), await wire.there()
    async with running(here, there):
        answers = await asyncio.gather(
            here.request("a", {"x": 1}), there.request("b", "你好"), here.request("c", None)
        )
    assert list(answers) == [["a", {"x": 1}], ["b", "你好"], ["c", None]]


async def test_answers_may_come_in_another_order():
    gates = {"slow": asyncio.Event(), "fast": asyncio.Event()}

    async def handle(method: str, payload: Any) -> Any:
        await gates[method].wait()
        return method

    async with asking(handle) as here:
        slow, fast = (
            asyncio.create_task(here.request("slow", 0)),
            asyncio.create_task(here.request("fast", 0)),
        )
        gates["fast"].set()
        assert await fast == "fast"
        assert not slow.done()
        gates["slow"].set()
        assert await slow == "slow"


async def test_an_error_comes_with_its_code_and_words():
    async def handle(method: str, payload: Any) -> Any:
        raise RpcError("E_CAPABILITY_DENIED", "not granted") if method == "a" else ValueError("no")

    async with asking(handle) as here:
        with pytest.raises(RpcError, match="not granted") as caught:
            await here.request("a", None)
        assert caught.value.code == "E_CAPABILITY_DENIED"
        assert await raised_by(here.request("b", None)) == "E_CAPABILITY_FAILED"


@pytest.mark.parametrize("ends_with", [SystemExit, asyncio.CancelledError])
async def test_a_handler_that_wants_to_end_the_process_fails_alone(ends_with):
    async def handle(method: str, payload: Any) -> Any:
        if method == "bad":
            raise ends_with
        return "fine"

    async with asking(handle) as here:
        assert await raised_by(here.request("bad", None)) == "E_CAPABILITY_FAILED"
        assert await here.request("good", None) == "fine"


async def test_a_request_that_takes_too_long_is_stopped_on_the_other_side_and_the_peer_goes_on():
    stopped = asyncio.Event()

    async def handle(method: str, payload: Any) -> Any:
        if method == "slow":
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
        return method

    async with asking(handle) as here:
        assert await raised_by(here.request("slow", None, 0.01)) == "E_TIMEOUT"
        await asyncio.wait_for(stopped.wait(), PATIENCE)
        assert await here.request("quick", None, 10) == "quick"


async def test_a_request_that_is_cancelled_is_stopped_on_the_other_side():
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def handle(method: str, payload: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with asking(handle) as here:
        call = asyncio.create_task(here.request("slow", None))
        await begun.wait()
        call.cancel()
        await asyncio.wait_for(stopped.wait(), PATIENCE)
        assert here.is_open


async def test_notices_are_handled_in_order():
    seen: list[int] = []

    async def handle(method: str, payload: Any) -> Any:
        if method == "log":
            seen.append(payload)
        return list(seen)

    async with asking(handle) as here:
        for number in range(1000):
            here.notify("log", number)
        assert await here.request("seen", None) == list(range(1000))


async def test_a_notice_that_cannot_be_handled_ends_nothing(caplog):
    async def handle(method: str, payload: Any) -> Any:
        return {"ask": 1}[method]

    async with asking(handle) as here:
        here.notify("nonsense", None)
        assert await here.request("ask", None) == 1
    assert "nonsense" in caplog.text


async def test_a_payload_that_is_too_large_or_cannot_be_sent_fails_alone():
    async def handle(method: str, payload: Any) -> Any:
        return {"large": b"." * MOST_BYTES, "odd": object(), "fine": "."}[method]

    async with asking(handle) as here:
        assert await raised_by(here.request("large", None)) == "E_BAD_PAYLOAD"
        assert await raised_by(here.request("odd", None)) == "E_BAD_PAYLOAD"
        assert await raised_by(here.request("fine", b"." * MOST_BYTES)) == "E_BAD_PAYLOAD"
        assert await here.request("fine", None) == "."


async def test_a_payload_of_many_megabytes_arrives_whole():
    async with asking(echo) as here:
        assert (await here.request("x", "字" * 5_000_000))[1] == "字" * 5_000_000


async def test_whoever_waits_is_told_when_the_other_side_ends():
    async with against_bytes() as (here, run, _, writer):
        waiting = asyncio.create_task(here.request("x", None))
        await asyncio.sleep(0)
        writer.close()
        assert await raised_by(waiting) == "E_PLUGIN_CRASHED"
        assert (await run).code == "E_PLUGIN_CRASHED"
        assert await raised_by(here.request("x", None)) == "E_PLUGIN_CRASHED"


async def test_closing_fails_what_waits_and_cancels_what_works():
    cancelled, begun = asyncio.Event(), asyncio.Event()

    async def forever(method: str, payload: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    wire = Wire()
    here, there = await wire.here(forever), await wire.there(forever)
    async with running(here, there):
        waiting, other = (
            asyncio.create_task(here.request("x", None)),
            asyncio.create_task(there.request("x", None)),
        )
        await begun.wait()
        here.close()
        assert await raised_by(waiting) == "E_SHUTTING_DOWN"
        assert await raised_by(other) == "E_PLUGIN_CRASHED"
        await asyncio.wait_for(cancelled.wait(), PATIENCE)
    assert await raised_by(here.request("x", None)) == "E_SHUTTING_DOWN"


MALFORMED = {
    "a length beyond the limit": b"\xff\xff\xff\xff",
    "no msgpack": b"\x00\x00\x00\x01\xc1",
    "nothing": b"\x00\x00\x00\x00",
    "bytes after the end": b"\x00\x00\x00\x02\x01\x01",
    "nested beyond reason": (200_000).to_bytes(4, "big") + b"\x91" * 200_000,
    **{
        str(odd): len(body := msgpack.packb(odd)).to_bytes(4, "big") + body
        for odd in (
            7,
            {},
            {"type": "request", "id": "1", "method": "x", "payload": 0},
            {"type": "request", "id": True, "method": "x", "payload": 0},
            {"type": "request", "id": 1, "method": "x" * 65, "payload": 0},
            {"type": "response", "id": 1, "error": "no"},
            {"type": "response", "id": 1},
            {"type": "other", "id": 1},
            {7: 1},
        )
    },
}


@pytest.mark.parametrize("frame", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_frame_ends_the_peer_with_a_reason(frame):
    async with against_bytes() as (here, run, _, writer):
        waiting = asyncio.create_task(here.request("x", None))
        writer.write(frame)
        ended = await asyncio.wait_for(run, PATIENCE)
        assert ended.code in {"E_PROTOCOL_MISMATCH", "E_BAD_PAYLOAD"}
        assert await raised_by(waiting) == ended.code


async def test_an_end_within_a_frame_is_an_end():
    async with against_bytes() as (_, run, _, writer):
        writer.write(encode_request(1, "x", "y" * 100)[:50])
        writer.close()
        assert (await asyncio.wait_for(run, PATIENCE)).code == "E_PLUGIN_CRASHED"


async def test_answers_that_nobody_waits_for_are_dropped():
    async with against_bytes() as (here, _, reader, writer):
        writer.write(encode_response(99, "late"))
        asked = asyncio.create_task(here.request("x", None))
        await reader.readexactly(10)
        writer.write(encode_response(1, "first") + encode_response(1, "second"))
        assert await asyncio.wait_for(asked, PATIENCE) == "first"
        assert here.is_open


async def test_requests_beyond_the_bound_are_refused(monkeypatch):
    monkeypatch.setattr(peers, "AT_ONCE", 2)
    gate = asyncio.Event()

    async def handle(method: str, payload: Any) -> Any:
        await gate.wait()
        return method

    async with against_bytes(handle) as (here, _, reader, writer):
        writer.write(b"".join(encode_request(number, "x", None) for number in (1, 2, 3)))
        length = int.from_bytes(await reader.readexactly(4), "big")
        refusal = msgpack.unpackb(await reader.readexactly(length))
        assert refusal["id"] == 3
        assert refusal["error"]["code"] == "E_HOST_OVERLOADED"
        calls = [asyncio.create_task(here.request("y", None)) for _ in range(2)]
        await asyncio.sleep(0)
        assert await raised_by(here.request("y", None)) == "E_BACK_PRESSURE"
        for call in calls:
            call.cancel()
        gate.set()


async def test_sending_to_one_who_does_not_read_is_refused_in_time():
    async with against_bytes() as (here, _, reader, _):
        reader._transport.pause_reading()
        for _ in range(3):
            with contextlib.suppress(RpcError):
                here.notify("log", b"." * (15 * 1024 * 1024))
        with pytest.raises(RpcError) as caught:
            here.notify("log", b"." * (15 * 1024 * 1024))
        assert caught.value.code == "E_BACK_PRESSURE"
        assert here.is_open
        reader._transport.resume_reading()
