"""The fake client against a server of a few lines, so that it is not judged by the product it
judges."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from tests.cast import BOT, GROUP, MEMBER, PROBE, PROBE_ANSWER, PROBER, STRANGER
from tests.fake_onebot import (
    MISSING,
    FakeOneBot,
    failed,
    handshake_status,
    parse_action,
    spoken,
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
        return await asyncio.wait_for(self.frames.get(), 5)


def gate(_socket: ServerConnection, request: Request) -> Response | None:
    """Refuse every token but one."""
    if request.headers.get("Authorization") in (None, "Bearer t0k"):
        return None
    return Response(HTTPStatus.FORBIDDEN, "Forbidden", request.headers)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    async with serve(peer.serve, "127.0.0.1", 0, process_request=gate) as server:
        peer.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
        yield peer


async def test_it_introduces_itself_as_clients_do(peer):
    async with FakeOneBot(peer.url, token="t0k") as bot:
        assert await peer.next() | {"time": 0} == {
            "time": 0, "self_id": BOT, "post_type": "meta_event", "meta_event_type": "lifecycle",
            "sub_type": "connect",
        }  # fmt: skip
        assert bot.self_id == BOT
    headers = peer.sockets[0].request.headers
    assert (headers["X-Self-ID"], headers["X-Client-Role"], headers["User-Agent"]) == (
        str(BOT),
        "Universal",
        "OneBot/11",
    )


async def test_headers_given_last_win_and_none_removes_one(peer):
    async with FakeOneBot(
        peer.url,
        token="wrong",
        headers={"Authorization": "Bearer t0k", "X-Self-ID": None, "Via": "proxy"},
    ):
        headers = peer.sockets[0].request.headers
    assert "X-Self-ID" not in headers
    assert headers["Via"] == "proxy"


async def test_a_refused_handshake_has_a_status(peer):
    assert await handshake_status(peer.url, token="wrong") == 403
    assert await handshake_status(peer.url, token="t0k") == 101


async def test_messages_have_fresh_ids_and_overrides_replace_or_remove_fields(peer):
    async with FakeOneBot(peer.url, greet=False) as bot:
        first = await bot.say_private(STRANGER, "hi")
        second = await bot.say_private(STRANGER, "hi", message_id=-1, sender=MISSING)
    assert first["message"] == [{"type": "text", "data": {"text": "hi"}}]
    assert first["sender"]["nickname"] == "Stan"
    assert second["message_id"] == -1 != first["message_id"]
    assert "sender" not in second


@pytest.mark.parametrize(("mention", "types"), [(True, ["at", "text"]), (False, ["text"])])
async def test_a_group_message_mentions_the_bot_unless_told_otherwise(peer, mention, types):
    async with FakeOneBot(peer.url, greet=False) as bot:
        await bot.say_group(GROUP, MEMBER, "hi", mention=mention)
        event = await peer.next()
    assert [part["type"] for part in event["message"]] == types
    assert (event["group_id"], event["sender"]["role"]) == (GROUP, "member")


async def test_actions_are_answered_at_once_with_fresh_message_ids(peer):
    async with FakeOneBot(peer.url, greet=False) as bot:
        await bot.heartbeat()
        await peer.next()
        await peer.say(MEMBER, "one", echo="a")
        await peer.say(MEMBER, "two", echo="b")
        answers = [await peer.next(), await peer.next()]
    assert [answer["echo"] for answer in answers] == ["a", "b"]
    assert len({answer["data"]["message_id"] for answer in answers}) == 2


async def test_questions_for_information_are_answered_but_are_no_next_action(peer):
    async with FakeOneBot(peer.url, greet=False) as bot:
        await bot.heartbeat()
        await peer.next()
        await peer.send({"action": "get_login_info", "params": {}, "echo": "a"})
        assert (await peer.next())["data"]["user_id"] == BOT
        await peer.send({"action": "get_status", "params": {}, "echo": "b"})
        await peer.say(MEMBER, "hi")
        assert spoken(await bot.next_action()) == "hi"
        assert (len(bot.actions), len(bot.introductions)) == (2, 1)


async def test_answers_can_be_scripted(peer):
    async with FakeOneBot(peer.url) as bot:
        await peer.next()
        bot.answer_with(lambda action: failed(120, "muted") if "bad" in spoken(action) else None)
        await peer.say(MEMBER, "ignored", echo="a")
        await peer.say(MEMBER, "bad", echo="b")
        answer = await peer.next()
    assert (answer["echo"], answer["retcode"], answer["wording"]) == ("b", 120, "muted")


async def test_a_late_answer_can_come_on_the_next_socket(peer):
    async with FakeOneBot(peer.url) as old:
        await peer.next()
        old.stay_silent()
        await peer.say(MEMBER, "hi", echo="kept")
        action = await old.next_action()
    async with FakeOneBot(peer.url, greet=False) as new:
        await new.answer(action)
        assert (await peer.next())["echo"] == "kept"


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


async def test_the_close_code_of_the_server_is_seen(peer):
    async with FakeOneBot(peer.url) as bot:
        await peer.next()
        await peer.sockets[0].close(4009, "replaced")
        assert await bot.close_code() == 4009


async def test_a_cut_connection_looks_cut_to_the_server(peer):
    async with FakeOneBot(peer.url) as bot:
        await peer.next()
        bot.cut()
        assert await bot.close_code() == 1006
        await peer.sockets[0].wait_closed()
        assert peer.sockets[0].close_code == 1006


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
