"""The tool ``send_image``: a picture of this chat, our own copy first, and never one of another
chat."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async

from agent.builtin_tools import attachments
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.types import ChatAddress, Delivery, MediaRef, MessagePart
from agent.media.chat_images import ChatImages, PictureName, build_picture_name, parse_picture_name
from agent.media.downloads import MediaDownloader
from agent.media.file_store import FileStore, StoredFile
from agent.media.forwards import ForwardReader
from agent.media.media_store import MediaRow, record_media
from agent.media.result_pictures import ResultPictureHook
from agent.models import Message, MessageMedia, ResultPicture
from agent.record.chats.chat_record import MessageRecall, record_recall
from agent.record.record import Record
from agent.run.services import RunServices
from tests.admin.record import call_of, run_for, step_of
from tests.agent.opening import ScriptedSource, forward, node, text
from tests.agent.talk import GROUP, PRIVATE, accept, message
from tests.pictures import BLUE, GREEN, RED, colour_of, picture
from tools.contract import (
    ToolContentItem,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.fetch.allow_list import AllowList
from tools.fetch.fetcher import Fetcher
from tools.functions.function_tool import FunctionProvider, tool as as_tool
from tools.registry.registry import ToolRegistry

State = Message.State
FAR = ChatAddress("10001", "group", "30002")


class Voice:
    """A speaker of one chat that only remembers what it was given."""

    def __init__(self, chat: ChatAddress) -> None:
        self.chat = chat
        self.parts: list[MessagePart] = []
        self.delivery = Delivery(State.DELIVERED)

    async def send(self, parts: list[MessagePart], text: str, *, tool_call_pk: int) -> Delivery:
        self.parts += parts
        return self.delivery

    @property
    def colours(self) -> list[str]:
        return [colour_of(Path(part.path).read_bytes()) for part in self.parts]


class Desk:
    """Calls the tool from a chat, over a client that answers by script."""

    def __init__(self, record: Record, files: FileStore) -> None:
        self.record, self.files = record, files
        self.source = ScriptedSource()
        self.fetcher = Fetcher(AllowList.parse([]))
        self.voice = Voice(GROUP)

    def registry(self) -> ToolRegistry:
        gallery = ChatImages(
            self.record,
            self.files,
            ForwardReader(self.record, self.source),
            MediaDownloader(self.fetcher, self.files, self.source),
        )
        registry = ToolRegistry()
        registry.register_provider(
            MaisakaBuiltinToolProvider([attachments.build_image_tool(gallery, self.files)])
        )
        registry.add_hooks(after=ResultPictureHook(self.record, self.files).keep)
        return registry

    async def send(self, chat: ChatAddress = GROUP, **arguments: Any) -> ToolExecutionResult:
        self.voice.chat = chat
        context = ToolExecutionContext(
            session_id=chat.address, services=RunServices(sender=cast("Any", self.voice))
        )
        call = ToolInvocation("send_image", arguments, "c9", call_pk=5)
        return await self.registry().invoke(call, context)

    async def refused(self, chat: ChatAddress = GROUP, **arguments: Any) -> str:
        """What the model is told of a call that must not send anything."""
        result = await self.send(chat, **arguments)
        assert (result.success, self.voice.parts) == (False, [])
        return result.error_message


@pytest.fixture
async def desk(record: Record, tmp_path: Path):
    desk = Desk(record, FileStore(tmp_path / "received"))
    yield desk
    await desk.fetcher.close()


def inline(content: bytes) -> dict[str, Any]:
    """A picture that a client sends along."""
    return {"type": "image", "data": {"file": f"base64://{base64.b64encode(content).decode()}"}}


@sync_to_async
def received(
    *segments: dict[str, Any],
    message_id: str = "5",
    chat: ChatAddress = GROUP,
    kept: tuple[StoredFile, ...] = (),
) -> int:
    """A message on record, with our copies of its pictures; its key."""
    (accepted,) = accept(message("[图片]", chat, segments=list(segments), message_id=message_id))
    record_media(
        [
            (
                accepted.pk,
                [MediaRow(MediaRef("image"), one.sha256, one.mime, one.size) for one in kept],
            )
        ]
    )
    return accepted.pk


# --- A picture of a message ---------------------------------------------------------


async def test_our_own_copy_is_sent_without_asking_anybody(desk: Desk):
    kept = desk.files.put(picture(colour=RED))
    await received({"type": "image", "data": {"url": "http://expired.example/"}}, kept=(kept,))
    result = await desk.send(msg_id="5")
    assert (result.content, desk.voice.colours, desk.source.asked) == (
        attachments.SENT,
        ["red"],
        [],
    )
    assert desk.voice.parts == [MessagePart("image", path=str(kept.path.resolve()))]


async def test_a_picture_that_nobody_looked_at_is_fetched_now_and_kept(desk: Desk):
    await received(inline(picture(colour=BLUE)))
    assert (await desk.send(msg_id="5")).success
    assert desk.voice.colours == ["blue"]
    assert desk.files.put(picture(colour=BLUE)).path.resolve() == Path(desk.voice.parts[0].path)


async def test_a_copy_that_is_gone_is_fetched_anew(desk: Desk):
    kept = desk.files.put(picture(colour=RED))
    await received(inline(picture(colour=GREEN)), kept=(kept,))
    desk.files.remove(kept.sha256)
    await desk.send(msg_id="5")
    assert desk.voice.colours == ["green"]


async def test_any_picture_of_a_message_can_be_named(desk: Desk):
    await received(text("two"), inline(picture(colour=RED)), inline(picture(colour=BLUE)))
    await desk.send(media_index="message:5:2")
    assert desk.voice.colours == ["blue"]


async def test_a_picture_in_a_forwarded_message_can_be_named(desk: Desk):
    await received(forward("1"))
    inner = forward("", [node(text("hi")), node(inline(picture(colour=GREEN)))])
    desk.source.answers = {"get_forward_msg_1": {"messages": [node(text("a")), node(inner)]}}
    await desk.send(media_index="message:5:2.2:1")
    assert desk.voice.colours == ["green"]


async def test_a_format_that_clients_do_not_take_is_sent_as_models_see_it(desk: Desk):
    kept = desk.files.put(picture("AVIF", RED))
    desk.files.shown_path(kept.sha256).write_bytes(picture("JPEG", RED))
    await received(inline(b""), kept=(kept,))
    assert (await desk.send(msg_id="5")).success
    assert desk.voice.parts[0].path.endswith(".shown")
    desk.files.shown_path(kept.sha256).unlink()
    assert "image/avif" in (await desk.send(msg_id="5")).error_message


@pytest.mark.parametrize("arguments", [{"msg_id": "5"}, {"media_index": "message:5:1"}])
async def test_a_picture_of_another_chat_is_out_of_reach(desk: Desk, arguments):
    kept = desk.files.put(picture())
    for chat in (PRIVATE, FAR):
        await received(inline(picture()), chat=chat, kept=(kept,))
    desk.source.answers = {
        "get_msg_5": {"message_type": "group", "group_id": 30002, "message": [inline(picture())]}
    }
    assert "本会话中没有" in await desk.refused(**arguments)


async def test_a_picture_of_a_message_that_was_taken_back_is_not_sent_again(desk: Desk):
    await received(inline(picture()), kept=(desk.files.put(picture()),))
    await desk.record.submit(record_recall, MessageRecall("10001", "5"))
    assert "已被撤回" in await desk.refused(msg_id="5")


async def test_what_cannot_be_had_is_said_in_words(desk: Desk):
    await received(text("no picture"))
    await received(inline(picture()), message_id="6")
    await received(inline(b"no picture at all"), message_id="7")
    await received({"type": "image", "data": {"file": "x.png"}}, message_id="8")
    assert "没有图片" in await desk.refused(msg_id="5")
    assert "只有 1 张图片，没有第 2 张" in await desk.refused(media_index="message:6:2")
    assert "图片已经无法取得" in await desk.refused(msg_id="7")
    assert "图片已经无法取得" in await desk.refused(msg_id="8")
    assert "本会话中没有" in await desk.refused(msg_id="404")


# --- A picture of a tool's result ---------------------------------------------------


@sync_to_async
def call_in(chat: ChatAddress) -> int:
    """A tool call on record, of a run in that chat; its key."""
    (accepted,) = accept(message("draw", chat))
    said = Message.objects.get(pk=accepted.pk)
    return call_of(step_of(run_for(said))).pk


def drawing(*contents: bytes) -> Callable[[], ToolExecutionResult]:
    items = [
        ToolContentItem("image", data=base64.b64encode(one).decode(), mime_type="image/png")
        for one in contents
    ]

    def draw() -> ToolExecutionResult:
        """Draw."""
        return ToolExecutionResult(
            "draw",
            success=True,
            content="drawn",
            content_items=[ToolContentItem("text", "hi"), *items],
        )

    return draw


async def draw(
    desk: Desk, *contents: bytes, chat: ChatAddress = GROUP, call_id: str = "c1"
) -> None:
    """Have a tool give pictures back, in a call of that chat."""
    registry = desk.registry()
    registry.register_provider(FunctionProvider("art", "builtin", [as_tool(drawing(*contents))]))
    call = ToolInvocation("draw", {}, call_id, call_pk=await call_in(chat))
    assert (
        await registry.invoke(call, ToolExecutionContext(session_id=chat.address))
    ).content == "drawn"


async def test_a_picture_of_an_earlier_result_is_sent_by_its_place(desk: Desk):
    await draw(desk, picture(colour=RED), picture(colour=BLUE))
    assert (await desk.send(media_index="tool_result:c1:3")).success
    assert desk.voice.colours == ["blue"]


async def test_of_calls_with_the_same_id_the_last_one_of_this_chat_counts(desk: Desk):
    await draw(desk, picture(colour=RED))
    await draw(desk, picture(colour=BLUE))
    await draw(desk, picture(colour=GREEN), chat=FAR)
    await desk.send(media_index="tool_result:c1:2")
    assert desk.voice.colours == ["blue"]


async def test_results_of_another_chat_are_out_of_reach(desk: Desk):
    await draw(desk, picture(), chat=FAR)
    assert "tool_result:c1:2" in await desk.refused(media_index="tool_result:c1:2")


@pytest.mark.parametrize("index", ["tool_result:c1:1", "tool_result:c1:99", "tool_result:c2:2"])
async def test_a_result_without_that_picture_is_refused_with_its_name(desk: Desk, index):
    await draw(desk, picture())
    assert index in await desk.refused(media_index=index)


async def test_a_result_whose_copy_is_gone_is_refused(desk: Desk):
    await draw(desk, picture())
    desk.files.remove(desk.files.put(picture()).sha256)
    assert "已经被删除" in await desk.refused(media_index="tool_result:c1:2")


async def test_only_pictures_are_kept_of_a_result(desk: Desk):
    await draw(desk, b"<svg/>", b"%PDF-1.7", picture())
    assert [row.position async for row in ResultPicture.objects.all()] == [4]


# --- Arguments ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"msg_id": ""},
        {"msg_id": " ", "media_index": ""},
        {"msg_id": "5", "media_index": "message:5:1"},
    ],
)
async def test_exactly_one_argument_is_taken(desk: Desk, arguments):
    assert attachments.ONE_OF_BOTH in await desk.refused(**arguments)


@pytest.mark.parametrize(
    "index",
    [
        *(
            "c1:1",
            "tool_result:c1",
            "tool_result::1",
            "tool_result:c1:0",
            "tool_result:c1:-1",
            "tool_result:c1:x",
        ),
        *(
            "file:/etc:1",
            "../../secret_key",
            "message::1",
            "tool_result:c1:９",
            "message:5:99999999999",
            "\0",
        ),
    ],
)
async def test_a_name_that_is_none_is_refused_with_the_right_form(desk: Desk, index):
    assert "tool_result:<call_id>:<序号>" in await desk.refused(media_index=index)


@pytest.mark.parametrize("path", [(), (1,), (2, 1, 3)])
@pytest.mark.parametrize("message_id", ["5", "-2147483648", "a:b"])
def test_a_name_is_taken_apart_as_it_was_made(message_id, path):
    assert parse_picture_name(build_picture_name(message_id, path, 4)) == PictureName(
        "message", message_id, path, 4
    )


@pytest.mark.parametrize(
    ("state", "told"), [(State.FAILED, "bot is muted"), (State.UNKNOWN, "请勿重发")]
)
async def test_the_model_is_told_what_the_client_said(desk: Desk, state, told):
    await received(inline(picture()))
    desk.voice.delivery = Delivery(state, error="bot is muted")
    result = await desk.send(msg_id="5")
    assert told in result.get_history_content()


async def test_a_copy_that_is_sent_counts_as_used(desk: Desk):
    kept = desk.files.put(picture())
    pk = await received(inline(picture()), kept=(kept,))
    before = await MessageMedia.objects.select_related("kept").aget(message_id=pk)
    await desk.send(msg_id="5")
    after = await MessageMedia.objects.select_related("kept").aget(message_id=pk)
    assert before.kept is not None
    assert after.kept is not None
    assert after.kept.last_used_at > before.kept.last_used_at
