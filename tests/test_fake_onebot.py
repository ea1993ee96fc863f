"""The fake client against a server of a few lines, so that it is not judged by the product it
judges."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from tests.cast import MEMBER, PROBE, PROBE_ANSWER, PROBER
from tests.environment import PATIENCE
from tests.fake_onebot import (
    FakeOneBot,
    parse_action,
    text,
)


class Peer:
    """A server that remembers its sockets and frames, and answers probes."""

    def __init__(self) -> None:
        self.url = ""
        self.sockets: list[ServerConnection] = []
        self.frames: asyncio.Queue[Any] = asyncio.Queue()

    async def serve(self, socket: ServerConnection) -> None:
        self.sockets.append(socket)
        async for frame in socket:
            event = json.loads(frame)
            if PROBE in event.get("raw_message", ""):
                await self.say(event["user_id"], PROBE_ANSWER)
            else:
                self.frames.put_nowait(event)

    async def say(self, user_id: int, words: str, echo: str = "") -> None:
        params = {"user_id": user_id, "message": [text(words)]}
        await self.send(
            {
                "action": "send_private_msg",
                "params": params,
                "echo": echo or f"e{id(params)}-{words}",
            }
        )

    async def send(self, frame: Any) -> None:
        await self.sockets[-1].send(json.dumps(frame) if isinstance(frame, dict) else frame)

    async def next(self) -> Any:
        return await asyncio.wait_for(self.frames.get(), PATIENCE)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    async with serve(peer.serve, "127.0.0.1", 0) as server:
        peer.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
        yield peer


async def test_silence_is_proven_by_a_probe(peer):
    async with FakeOneBot(peer.url) as bot:
        await peer.next()
        await bot.no_action()
        assert bot.actions[-1]["params"]["user_id"] == PROBER


async def test_a_probe_notices_what_was_sent_before_it(peer):
    async with FakeOneBot(peer.url) as bot:
        await peer.next()
        await peer.say(MEMBER, "noise")
        with pytest.raises(AssertionError, match="silence was expected"):
            await bot.no_action()


async def test_awaiting_an_action_that_never_comes_fails(peer):
    async with FakeOneBot(peer.url) as bot:
        with pytest.raises(AssertionError, match="no action within"):
            await bot.next_action(timeout=0.01)


def frame(**changes: Any) -> str:
    return json.dumps(
        {
            "action": "send_private_msg",
            "params": {"user_id": 1, "message": [text("hi")]},
            "echo": "e",
        }
        | changes
    )


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (frame().encode(), "text frame"),
        ("[]", "not an action"),
        ('{"action": "x", "params": {"n": NaN}, "echo": "e"}', "NaN"),
        (frame(params=None), "params"),
        (frame(echo=1), "echo"),
        (frame(echo=""), "echo"),
        (frame(params={"user_id": "123"}), "user_id"),
        (frame(params={"message": "hi"}), "segments"),
        (frame(params={"message": [{"type": "at", "data": {"qq": 1}}]}), "value"),
    ],
)
def test_a_frame_that_clients_would_not_understand_is_a_violation(bad, why):
    with pytest.raises(ValueError, match=why):
        parse_action(bad)


async def test_violations_are_raised_on_leaving(peer):
    async def play(send: Callable[[], Any]) -> None:
        async with FakeOneBot(peer.url) as bot:
            await peer.next()
            await send()
            await peer.say(MEMBER, "after")
            await bot.next_action()

    with pytest.raises(AssertionError, match="not a text frame"):
        await play(lambda: peer.sockets[-1].send(frame().encode()))


async def test_an_echo_used_twice_is_a_violation(peer):
    async with FakeOneBot(peer.url) as bot:
        await peer.next()
        for _ in range(2):
            await peer.say(MEMBER, "hi", echo="same")
            await bot.next_action()
        assert ["echo was used twice" in violation for violation in bot.violations] == [True]
        bot.violations.clear()
