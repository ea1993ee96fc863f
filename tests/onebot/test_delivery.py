"""Delivery: from an address and segments to a frame, and from the client's answer to an outcome."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.models import Message
from agent.types import ChatAddress, Delivery, Part
from onebot import calls as calls_module
from onebot import delivery as delivery_module
from onebot.actions import parse_response
from onebot.calls import Calls
from onebot.connections import Connections, Socket
from onebot.delivery import Delivery11, outcome
from onebot.relay import Relay

RESPONSES = json.loads((Path(__file__).parents[1] / "payloads" / "responses.json").read_text(encoding="utf-8"))
JUDGED = [payload for payload in RESPONSES if "is_success" in payload["becomes"]]
ACCOUNT = "10001"
GROUP = ChatAddress(ACCOUNT, "group", "30003")
HELLO = [{"type": "text", "data": {"text": "hello"}}]
State = Message.State


async def no_accounts() -> dict[str, str]:
    return {}


class Line:
    """A delivery with one connected client, whose answers ``respond`` makes."""

    def __init__(self, respond: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        self.frames: list[dict[str, Any]] = []
        self.connections, self.calls = Connections(), Calls()
        self.delivery = Delivery11(self.connections, self.calls, Relay(no_accounts))
        self.socket = Socket(self._send, "universal")
        self.connections.attach(ACCOUNT, self.socket)
        self._respond = respond

    async def _send(self, message: dict[str, Any]) -> None:
        frame = json.loads(message["text"])
        self.frames.append(frame)
        if response := self._respond(frame):
            self.calls.resolve(ACCOUNT, parse_response({**response, "echo": frame["echo"]}))


@pytest.mark.parametrize("payload", JUDGED, ids=lambda payload: payload["name"])
def test_a_response_says_what_became_of_the_message(payload):
    becomes = payload["becomes"]
    found = outcome(parse_response(payload["frame"]))
    assert (found.state == State.DELIVERED) == becomes["is_success"]
    assert (found.state == State.UNKNOWN) == becomes.get("is_uncertain", False)
    assert found.message_id == becomes.get("message_id", found.message_id)
    assert bool(found.error) == (found.state != State.DELIVERED)


def test_a_clients_long_words_are_cut():
    found = outcome(parse_response({"status": "failed", "retcode": 1200, "message": "x" * 100_000}))
    assert len(found.error) == 1_000


async def test_an_answered_message_is_delivered_under_the_given_echo():
    line = Line(lambda _frame: {"status": "ok", "retcode": 0, "data": {"message_id": -5}})
    assert await line.delivery.deliver(GROUP, HELLO, echo="e-1") == Delivery(State.DELIVERED, "-5")
    assert line.frames == [{"action": "send_group_msg", "params": {"group_id": 30003, "message": HELLO}, "echo": "e-1"}]


async def test_a_temporary_session_is_answered_through_its_group():
    line = Line(lambda _frame: {"status": "ok", "retcode": 0})
    await line.delivery.deliver(ChatAddress(ACCOUNT, "private", "20002"), HELLO, echo="e-1", temp_group_id="30003")
    assert line.frames[0]["action"] == "send_private_msg"
    assert line.frames[0]["params"] == {"user_id": 20002, "group_id": 30003, "message": HELLO}


async def test_a_refused_message_has_failed_in_the_clients_words():
    line = Line(lambda _frame: {"status": "failed", "retcode": 1200, "wording": "muted"})
    assert await line.delivery.deliver(GROUP, HELLO, echo="e-1") == Delivery(State.FAILED, error="muted")


async def test_a_message_without_an_answer_is_of_unknown_outcome(monkeypatch):
    monkeypatch.setattr(delivery_module, "SEND_TIMEOUT", 0.01)
    line = Line(lambda _frame: None)
    found = await line.delivery.deliver(GROUP, HELLO, echo="e-1")
    assert found.state == State.UNKNOWN
    assert len(line.frames) == 1


async def test_a_message_whose_socket_ended_is_of_unknown_outcome(monkeypatch):
    monkeypatch.setattr(calls_module, "GRACE_SECONDS", 0.01)
    line = Line(lambda _frame: line.calls.socket_ended(line.socket))
    found = await line.delivery.deliver(GROUP, HELLO, echo="e-1")
    assert found.state == State.UNKNOWN
    assert len(line.frames) == 1


async def test_a_message_for_an_account_that_is_not_connected_fails_at_once():
    line = Line(lambda _frame: None)
    line.connections.detach(ACCOUNT, line.socket)
    assert not line.delivery.is_connected(GROUP)
    assert (await line.delivery.deliver(GROUP, HELLO, echo="e-1")).state == State.FAILED


@pytest.mark.may_block("nothing sends so much yet; encoding it takes a while")
async def test_a_frame_that_would_end_the_clients_connection_is_not_sent():
    line = Line(lambda _frame: None)
    picture = [{"type": "image", "data": {"file": "x" * (48 * 2**20)}}]
    found = await line.delivery.deliver(GROUP, picture, echo="e-1")
    assert found == Delivery(State.FAILED, error="the message is larger than 48 MiB")
    assert not line.frames


def test_parts_become_segments_whose_values_are_text():
    parts = [
        Part("quote", message_id="-5"),
        Part("mention_user", mention_user_id="20002"),
        Part("plain", text="[CQ:at,qq=all]&<"),
        Part("image", path="/media/a.png"),
        Part("record", url="https://x.example/a.mp3", path="/media/a.mp3"),
    ]
    assert Line(lambda _frame: None).delivery.compose(parts) == [
        {"type": "reply", "data": {"id": "-5"}},
        {"type": "at", "data": {"qq": "20002"}},
        {"type": "text", "data": {"text": "[CQ:at,qq=all]&<"}},
        {"type": "image", "data": {"file": "file:///media/a.png"}},
        {"type": "record", "data": {"file": "https://x.example/a.mp3"}},
    ]
