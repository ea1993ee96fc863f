"""Delivery: from an address and segments to a frame, and from the client's answer to an outcome."""

import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from django.utils import timezone

from agent.domain.errors import MediaError
from agent.domain.types import AccountSettings, ChatAddress, Delivery, MessagePart
from agent.models import Message
from onebot.connections import client as calls_module
from onebot.connections.client import Connections, OneBotClient, PendingActions, Relay, Socket
from onebot.gateway import delivery, delivery as delivery_module, media
from onebot.gateway.delivery import OneBotDelivery, to_delivery
from onebot.protocol.actions import parse_response

RESPONSES = json.loads(
    (Path(__file__).parents[2] / "payloads" / "responses.json").read_text(encoding="utf-8")
)
JUDGED = [payload for payload in RESPONSES if "is_success" in payload["becomes"]]
ACCOUNT = "10001"
GROUP = ChatAddress(ACCOUNT, "group", "30003")
HELLO = [{"type": "text", "data": {"text": "hello"}}]
State = Message.State


async def no_accounts() -> dict[str, str]:
    return {}


@pytest.fixture(autouse=True)
async def _close_what_was_opened() -> AsyncIterator[None]:
    yield
    while Line.deliveries:
        await Line.deliveries.pop().close()


class Line:
    """A delivery with one connected client, whose answers ``respond`` makes."""

    deliveries: ClassVar[list[OneBotDelivery]] = []

    def __init__(
        self,
        respond: Callable[[dict[str, Any]], dict[str, Any] | None],
        user_agent: str = "OneBot/11",
        *,
        by_url: bool = False,
    ) -> None:
        self.frames: list[dict[str, Any]] = []
        self.connections, self.calls = Connections(), PendingActions()
        self.delivery = OneBotDelivery(
            OneBotClient(self.connections, self.calls, Relay(no_accounts))
        )
        self.deliveries.append(self.delivery)
        self.delivery.replace_accounts({ACCOUNT: AccountSettings(media_by_url=by_url)})
        self.socket = Socket(self._send, "universal", user_agent)
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
    found = to_delivery(parse_response(payload["frame"]))
    assert (found.state == State.DELIVERED) == becomes["is_success"]
    assert (found.state == State.UNKNOWN) == becomes.get("is_uncertain", False)
    assert found.message_id == becomes.get("message_id", found.message_id)
    assert bool(found.error) == (found.state != State.DELIVERED)


def test_a_clients_long_words_are_cut():
    found = to_delivery(
        parse_response({"status": "failed", "retcode": 1200, "message": "x" * 100_000})
    )
    assert len(found.error) == 1_000


async def test_an_answered_message_is_delivered_under_the_given_echo():
    line = Line(lambda _frame: {"status": "ok", "retcode": 0, "data": {"message_id": -5}})
    assert await line.delivery.deliver(GROUP, HELLO, echo="e-1") == Delivery(State.DELIVERED, "-5")
    assert line.frames == [
        {"action": "send_group_msg", "params": {"group_id": 30003, "message": HELLO}, "echo": "e-1"}
    ]


async def test_a_temporary_session_is_answered_through_its_group():
    line = Line(lambda _frame: {"status": "ok", "retcode": 0})
    await line.delivery.deliver(
        ChatAddress(ACCOUNT, "private", "20002"), HELLO, echo="e-1", temp_group_id="30003"
    )
    assert line.frames[0]["action"] == "send_private_msg"
    assert line.frames[0]["params"] == {"user_id": 20002, "group_id": 30003, "message": HELLO}


async def test_a_refused_message_has_failed_in_the_clients_words():
    line = Line(lambda _frame: {"status": "failed", "retcode": 1200, "wording": "muted"})
    assert await line.delivery.deliver(GROUP, HELLO, echo="e-1") == Delivery(
        State.FAILED, error="muted"
    )


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


async def test_a_message_for_an_account_that_is_not_connected_was_surely_not_written():
    line = Line(lambda _frame: None)
    line.connections.detach(ACCOUNT, line.socket)
    assert not line.delivery.is_connected(GROUP)
    assert (await line.delivery.deliver(GROUP, HELLO, echo="e-1")).state == State.PENDING


@pytest.mark.may_block("nothing sends so much yet; encoding it takes a while")
async def test_a_frame_that_would_end_the_clients_connection_is_not_sent():
    line = Line(lambda _frame: None)
    picture = [{"type": "image", "data": {"file": "base64://" + "x" * (48 * 2**20)}}]
    found = await line.delivery.deliver(GROUP, picture, echo="e-1")
    assert found == Delivery(State.FAILED, error="the message is larger than 48 MiB")
    assert not line.frames


def test_parts_become_segments_whose_values_are_text():
    parts = [
        MessagePart("quote", message_id="-5"),
        MessagePart("mention_user", mention_user_id="20002"),
        MessagePart("plain", text="[CQ:at,qq=all]&<"),
        MessagePart("image", path="/media/a.png"),
        MessagePart("record", url="https://x.example/a.mp3", path="/media/a.mp3"),
    ]
    assert Line(lambda _frame: None).delivery.compose(parts) == [
        {"type": "reply", "data": {"id": "-5"}},
        {"type": "at", "data": {"qq": "20002"}},
        {"type": "text", "data": {"text": "[CQ:at,qq=all]&<"}},
        {"type": "image", "data": {"file": "file:///media/a.png"}},
        {"type": "record", "data": {"file": "https://x.example/a.mp3"}},
    ]


# --- Media --------------------------------------------------------------------------

OK = {"status": "ok", "retcode": 0, "data": {"message_id": 5}}
REFUSED = {"status": "failed", "retcode": 1200, "wording": "rich media transfer failed"}
PRIVATE = ChatAddress(ACCOUNT, "private", "20002")
PUBLIC = "https://93.184.215.14"


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    """The media folder, with one picture."""
    settings.MEDIA_DIR = tmp_path
    (tmp_path / "猫 1.png").write_bytes(b"cat")
    return tmp_path


@pytest.fixture
async def site(settings: Any) -> AsyncIterator[str]:
    """A web site with one picture."""
    settings.FETCH_ALLOW = ["127.0.0.1"]

    async def cat(_request: web.Request) -> web.Response:
        return web.Response(body=b"cat of the web")

    app = web.Application()
    app.router.add_get("/cat.png", cat)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


def in_base64(content: bytes) -> str:
    return "base64://" + base64.b64encode(content).decode()


def medium(kind: str, file: str | Path) -> dict[str, Any]:
    return {"type": kind, "data": {"file": f"file://{file}" if isinstance(file, Path) else file}}


def always(answer: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda _frame: answer


@pytest.mark.parametrize("kind", ["image", "record", "video"])
async def test_a_small_file_goes_out_as_base64_and_the_record_keeps_its_path(folder, kind):
    line, segments = Line(always(OK)), [medium(kind, folder / "猫 1.png"), *HELLO]
    assert (await line.delivery.deliver(GROUP, segments, echo="e-1")).state == State.DELIVERED
    assert line.frames[0]["params"]["message"] == [medium(kind, in_base64(b"cat")), *HELLO]
    assert segments[0]["data"] == {"file": f"file://{folder}/猫 1.png"}


async def test_files_go_out_as_paths_once_there_is_no_more_room(folder, monkeypatch):
    (folder / "large").write_bytes(b"12345")
    monkeypatch.setattr(media, "INLINE_BYTES", 7)
    line, small, large = (
        Line(always(OK)),
        medium("image", folder / "猫 1.png"),
        medium("video", folder / "large"),
    )
    await line.delivery.deliver(GROUP, [small, large, small, small], echo="e-1")
    inline = medium("image", in_base64(b"cat"))
    assert line.frames[0]["params"]["message"] == [inline, large, inline, small]


@pytest.mark.parametrize("kind", ["image", "record", "video", "file"])
async def test_a_public_url_passes_to_a_client_that_loads_media_itself(kind):
    line, segments = Line(always(OK), by_url=True), [medium(kind, f"{PUBLIC}/a%20b.png?x=1")]
    await line.delivery.deliver(GROUP, segments, echo="e-1")
    assert line.frames == [
        {
            "action": "send_group_msg",
            "params": {"group_id": 30003, "message": segments},
            "echo": "e-1",
        }
    ]


async def test_a_file_that_vanished_is_not_sent_and_named(folder):
    line = Line(always(OK))
    found = await line.delivery.deliver(
        GROUP, [medium("image", folder / "gone.png"), *HELLO], echo="e-1"
    )
    assert (found.state, line.frames) == (State.FAILED, [])
    assert "gone.png" in found.error


async def test_a_file_of_another_place_is_not_sent(folder):
    line = Line(always(OK))
    found = await line.delivery.deliver(GROUP, [medium("image", Path("/etc/passwd"))], echo="e-1")
    assert (found.state, line.frames) == (State.FAILED, [])


# --- Files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chat", "action", "peer"),
    [
        (GROUP, "upload_group_file", {"group_id": 30003}),
        (PRIVATE, "upload_private_file", {"user_id": 20002}),
    ],
)
async def test_a_file_is_uploaded_under_its_name(folder, chat, action, peer):
    line = Line(always({"status": "ok", "retcode": 0, "data": None}))
    found = await line.delivery.deliver(chat, [medium("file", folder / "猫 1.png")], echo="e-1")
    assert found == Delivery(State.DELIVERED)
    assert line.frames == [
        {
            "action": action,
            "params": {**peer, "file": in_base64(b"cat"), "name": "猫 1.png"},
            "echo": "e-1",
        }
    ]


async def test_a_large_file_is_uploaded_by_its_path(folder, monkeypatch):
    monkeypatch.setattr(media, "INLINE_BYTES", 2)
    line = Line(always(OK))
    await line.delivery.deliver(GROUP, [medium("file", folder / "猫 1.png")], echo="e-1")
    assert line.frames[0]["params"]["file"] == f"{folder}/猫 1.png"


@pytest.mark.parametrize("agent", ["CQHttp/4.15.0", "Lagrange.OneBot/1.0"])
async def test_a_client_that_takes_only_paths_is_given_one_and_nothing_else(folder, agent):
    line = Line(always(REFUSED), agent)
    found = await line.delivery.deliver(GROUP, [medium("file", folder / "猫 1.png")], echo="e-1")
    assert line.frames[0]["params"]["file"] == f"{folder}/猫 1.png"
    assert found.fallback is None


async def test_such_a_client_loads_an_address_first_and_uploads_what_it_got():
    line = Line(
        lambda frame: (
            {**OK, "data": {"file": "/cache/1"}} if frame["action"] == "download_file" else OK
        ),
        "CQHttp/4.15.0",
        by_url=True,
    )
    await line.delivery.deliver(GROUP, [medium("file", f"{PUBLIC}/%E7%8C%AB.pdf?x")], echo="e-1")
    download, upload = line.frames
    assert download["params"] == {"url": f"{PUBLIC}/%E7%8C%AB.pdf?x", "thread_count": 1}
    assert upload["params"] == {"group_id": 30003, "file": "/cache/1", "name": "猫.pdf"}
    assert download["echo"] != upload["echo"] == "e-1"


@pytest.mark.parametrize("answer", [REFUSED, {"status": "ok", "retcode": 0, "data": None}, None])
async def test_an_address_that_such_a_client_did_not_load_was_surely_not_sent(monkeypatch, answer):
    monkeypatch.setattr(delivery_module, "MEDIA_TIMEOUT", 0.05)
    line = Line(lambda _frame: answer, "CQHttp/4.15.0", by_url=True)
    found = await line.delivery.deliver(GROUP, [medium("file", f"{PUBLIC}/a.pdf")], echo="e-1")
    assert found.state == State.FAILED
    assert f"did not load {PUBLIC}/a.pdf" in found.error
    assert [frame["action"] for frame in line.frames] == ["download_file"]


# --- The second try -----------------------------------------------------------------


async def tried_again(line: Line, *segments: dict[str, Any]) -> dict[str, Any]:
    """The frame of the second try of a message that was refused first."""
    refused = await line.delivery.deliver(GROUP, list(segments), echo="e-1")
    assert (refused.state, refused.error) == (State.FAILED, "rich media transfer failed")
    assert refused.fallback is not None
    last = await line.delivery.deliver(GROUP, await refused.fallback(), echo="e-2")
    assert last.fallback is None
    return line.frames[-1]


async def test_an_address_that_the_client_could_not_use_is_loaded_and_sent_as_base64(site):
    frame = await tried_again(
        Line(always(REFUSED), by_url=True), medium("image", f"{site}/cat.png"), *HELLO
    )
    assert frame["params"]["message"] == [medium("image", in_base64(b"cat of the web")), *HELLO]


async def test_a_path_that_the_client_could_not_use_is_sent_as_base64(folder, monkeypatch):
    monkeypatch.setattr(media, "INLINE_BYTES", 2)
    frame = await tried_again(Line(always(REFUSED)), medium("video", folder / "猫 1.png"))
    assert frame["params"]["message"] == [medium("video", in_base64(b"cat"))]


async def test_a_file_by_address_is_uploaded_as_base64_under_its_name(site):
    frame = await tried_again(Line(always(REFUSED), by_url=True), medium("file", f"{site}/cat.png"))
    assert frame["action"] == "upload_group_file"
    assert frame["params"] == {
        "group_id": 30003,
        "file": in_base64(b"cat of the web"),
        "name": "cat.png",
    }


async def test_a_large_file_by_path_is_uploaded_as_base64(folder, monkeypatch):
    monkeypatch.setattr(media, "INLINE_BYTES", 2)
    frame = await tried_again(Line(always(REFUSED)), medium("file", folder / "猫 1.png"))
    assert frame["params"] == {"group_id": 30003, "file": in_base64(b"cat"), "name": "猫 1.png"}


async def test_what_cannot_be_loaded_after_a_refusal_is_said(site):
    line = Line(always(REFUSED), by_url=True)
    refused = await line.delivery.deliver(
        GROUP, [medium("image", f"{site}/missing.png")], echo="e-1"
    )
    assert refused.fallback is not None
    with pytest.raises(MediaError, match="网址"):
        await refused.fallback()


async def test_what_of_a_message_does_not_fit_into_a_frame_stays_a_url(site, monkeypatch):
    monkeypatch.setattr(delivery, "SMALL_BYTES", 5)
    monkeypatch.setattr(delivery, "INLINE_ROOM_BYTES", 20)
    line, picture = Line(always(REFUSED)), medium("image", f"{site}/cat.png")
    found = await line.delivery.deliver(GROUP, [picture, picture, *HELLO], echo="e-1")
    assert line.frames[0]["params"]["message"] == [
        medium("image", in_base64(b"cat of the web")),
        picture,
        *HELLO,
    ]
    assert found.fallback is None


async def test_media_of_the_web_that_take_too_long_are_not_sent_and_said(site, monkeypatch):
    monkeypatch.setattr(delivery, "LOAD_SECONDS", 1)
    line = Line(always(OK))
    async with line.delivery._web._turns, contextlib.AsyncExitStack() as turns:
        for _ in range(delivery.AT_ONCE - 1):
            await turns.enter_async_context(line.delivery._web._turns)
        found = await line.delivery.deliver(GROUP, [medium("image", f"{site}/cat.png")], echo="e-1")
    assert (found.state, found.error, line.frames) == (State.FAILED, delivery.TOO_SLOW, [])
    assert (
        await line.delivery.deliver(GROUP, [medium("image", f"{site}/cat.png")], echo="e-2")
    ).state == State.DELIVERED


async def test_files_that_do_not_fit_into_one_frame_together_are_said(folder, monkeypatch):
    monkeypatch.setattr(media, "INLINE_ROOM_BYTES", 5)
    monkeypatch.setattr(media, "INLINE_BYTES", 2)
    refused = await Line(always(REFUSED)).delivery.deliver(
        GROUP, [medium("image", folder / "猫 1.png")] * 2, echo="e-1"
    )
    assert refused.fallback is not None
    with pytest.raises(MediaError, match=r"猫 1\.png is too large"):
        await refused.fallback()


NTEVENT = {
    "status": "failed",
    "retcode": 1200,
    "wording": 'Timeout: NTEvent sendMsg EventRet:\n{"result": 0}',
}
MUTED = {
    "status": "failed",
    "retcode": 1200,
    "wording": 'EventChecker Failed: NTEvent EventRet:\n{"result": 120}',
}


@pytest.mark.parametrize("answer", [OK, NTEVENT, MUTED, {"status": "failed", "retcode": 120}])
async def test_nothing_is_tried_again_that_may_have_arrived_or_may_not_be_said_at_all(answer):
    line = Line(always(answer), by_url=True)
    found = await line.delivery.deliver(GROUP, [medium("image", f"{PUBLIC}/a.png")], echo="e-1")
    assert found.fallback is None


async def test_a_pause_that_never_came_on_record_is_not_believed_for_ever(monkeypatch):
    line = Line(always(MUTED))
    for echo in ("e-1", "e-2"):
        assert (await line.delivery.deliver(GROUP, HELLO, echo=echo)).pause == "muted"
    assert len(line.frames) == 1
    soon = timezone.now() + timedelta(seconds=120)
    monkeypatch.setattr("onebot.gateway.delivery.timezone.now", lambda: soon)
    await line.delivery.deliver(GROUP, HELLO, echo="e-3")
    assert len(line.frames) == 2


async def test_nothing_is_tried_again_that_got_no_answer(monkeypatch):
    monkeypatch.setattr(delivery_module, "MEDIA_TIMEOUT", 0.01)
    line = Line(lambda _frame: None, by_url=True)
    found = await line.delivery.deliver(GROUP, [medium("image", f"{PUBLIC}/a.png")], echo="e-1")
    assert (found.state, found.fallback) == (State.UNKNOWN, None)


async def test_nothing_is_tried_again_that_was_base64_already_or_has_no_media(folder):
    line = Line(always(REFUSED))
    for segments in (
        HELLO,
        [medium("image", folder / "猫 1.png")],
        [medium("file", folder / "猫 1.png")],
    ):
        assert (
            await line.delivery.deliver(GROUP, segments, echo=f"e-{segments[0]['type']}")
        ).fallback is None
