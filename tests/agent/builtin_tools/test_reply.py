"""The tool ``reply``: every way it can fail is told to the model, and nothing is sent twice or to
anybody else."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async

from agent.builtin_tools import reply
from agent.builtin_tools.attachments import AttachmentFinder
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.errors import LLMError
from agent.domain.types import AnswerMessage, Delivery, MediaRef, MessagePart
from agent.media.chat_images import ChatImages
from agent.media.file_store import FileStore
from agent.media.forwards import ForwardReader
from agent.media.media_store import MediaRow, record_media
from agent.models import Message, Sticker
from agent.record.record import Record
from agent.run.message_sender import SendAllowance
from agent.run.services import RunServices
from agent.run.tool_results import RunFlow
from agent.stickers.store import sync_stickers
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tests.agent.opening import ScriptedSource
from tests.agent.talk import GROUP, Script, accept, message
from tests.pictures import RED, colour_of, picture
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation, ToolSpec
from tools.registry.registry import ToolRegistry

State = Message.State


class Voice:
    """A speaker that remembers what it was given, and comes to the deliveries it was told, then to
    good ones."""

    chat = GROUP
    part_limit = 1_999
    session_pk = 0
    has_replied = False
    allowance = SendAllowance()

    def __init__(self, *deliveries: Delivery) -> None:
        self.deliveries = list(deliveries)
        self.said: list[tuple[list[MessagePart], str]] = []

    async def send(self, parts: list[MessagePart], text: str, *, tool_call_pk: int) -> Delivery:
        self.said.append((parts, text))
        return self.deliveries.pop(0) if self.deliveries else Delivery(State.DELIVERED, "4711")

    async def send_each(
        self, messages: Sequence[AnswerMessage], *, tool_call_pk: int
    ) -> AsyncIterator[Delivery]:
        for parts, text in messages:
            yield (sent := await self.send(parts, text, tool_call_pk=tool_call_pk))
            if sent.state == State.FAILED:
                return

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.said]

    @property
    def colours(self) -> list[str]:
        return [
            colour_of(Path(part.path).read_bytes())
            for parts, _ in self.said
            for part in parts
            if part.type == "image"
        ]


class Desk:
    """Calls the tool as the run loop does, in a group where message 5 was said."""

    def __init__(self, record: Record, files: FileStore) -> None:
        self.record, self.files = record, files
        self.voice, self.flow = Voice(), RunFlow()
        self.registry = ToolRegistry()

    async def open(self, *answers: Any, replyer: bool = True) -> "Desk":
        """Put message 5 on record; the replyer gives these answers."""
        (accepted,) = await sync_to_async(accept)(
            message("几点集合？", GROUP, message_id="5", sender_name="Mei")
        )
        self.voice.session_pk, self.pk = accepted.session_pk, accepted.pk
        model = Script(*answers)
        agent = (
            Subagent(name="replyer", description="", prompt="p", model=lambda: model)
            if replyer
            else None
        )
        gallery = ChatImages(self.record, self.files, ForwardReader(self.record, ScriptedSource()))
        tool = reply.build_reply_tool(
            self.record,
            SubagentRunner(self.registry),
            agent,
            AttachmentFinder(self.record, gallery, self.files, None),
        )
        self.registry.register_provider(MaisakaBuiltinToolProvider([tool]))
        return self

    async def reply(self, **arguments: Any) -> ToolExecutionResult:
        context = ToolExecutionContext(
            session_id=GROUP.address,
            services=RunServices(sender=cast("Any", self.voice), flow=self.flow),
        )
        call = ToolInvocation("reply", {"msg_id": "5", **arguments}, "c9", call_pk=5)
        return await self.registry.invoke(call, context)

    async def refused(self, **arguments: Any) -> str:
        """What the model is told of a call that sent nothing."""
        result = await self.reply(**arguments)
        assert (result.success, self.voice.said, self.voice.has_replied) == (False, [], False)
        return result.error_message


@pytest.fixture
def desk(record: Record, settings: Any, tmp_path: Path) -> Desk:
    settings.MEDIA_DIR = tmp_path / "media"
    (settings.MEDIA_DIR / "stickers").mkdir(parents=True)
    return Desk(record, FileStore(tmp_path / "received"))


# --- The replyer --------------------------------------------------------------------


async def test_a_replyer_that_fails_is_told(desk: Desk):
    await desk.open(LLMError("no such model"))
    assert "没有完成任务: no such model" in await desk.refused(reply_reference="七点")


async def test_a_blank_reply_is_not_sent(desk: Desk):
    await desk.open(" \n ", "")
    assert "代为撰写的回复是空的" in await desk.refused(reply_reference="七点")


async def test_without_a_replyer_the_model_writes_itself(desk: Desk):
    await desk.open(replyer=False)
    assert "请直接在 text 中给出回复原文" in await desk.refused(reply_reference="七点")
    assert (await desk.reply(text="七点")).success


async def test_thoughts_are_not_part_of_a_reply(desk: Desk):
    await desk.open()
    assert (await desk.reply(text="<think>hm</think>\n七点")).success
    assert desk.voice.texts == ["七点"]


async def test_a_reply_of_nothing_but_thoughts_is_not_sent(desk: Desk):
    await desk.open()
    assert "text 和 reply_reference 不能都为空" in await desk.refused(text="<think>hm</think>")


@pytest.mark.parametrize("emptied", ["", "  ", None])
async def test_a_reply_that_a_hook_has_emptied_is_not_sent(desk: Desk, emptied: str | None):
    async def censor(
        spec: ToolSpec, invocation: ToolInvocation, context: ToolExecutionContext | None
    ) -> None:
        invocation.arguments["text"] = emptied

    await desk.open()
    desk.registry.add_hooks(before=censor)
    assert "text 和 reply_reference 不能都为空" in await desk.refused(text="rude")


# --- Sending ------------------------------------------------------------------------


async def test_after_a_part_that_could_not_be_sent_no_other_is(desk: Desk):
    desk.voice = Voice(Delivery(State.DELIVERED), Delivery(State.FAILED, error="被禁言了"))
    await desk.open()
    result = await desk.reply(text="一\n\n二\n\n三")
    assert desk.voice.texts == ["一", "二"]
    assert (
        result.error_message == "工具执行失败: 回复的第 2 条（共 3 条）发送失败: 被禁言了；"
        "之前的已发送或可能已送达，请勿重发；之后的没有发送"
    )
    assert desk.voice.has_replied


async def test_what_may_be_there_is_not_to_be_sent_again(desk: Desk):
    desk.voice = Voice(Delivery(State.UNKNOWN))
    await desk.open()
    assert "请勿重发" in (await desk.reply(text="七点")).content


async def test_a_second_reply_to_the_same_message_adds_a_reminder(desk: Desk):
    desk.voice = Voice(Delivery(State.FAILED, error="x"))
    await desk.open()
    told = [await desk.reply(text="七点") for _ in range(3)]
    assert [("你已经回复过这条消息" in one.content, one.success) for one in told] == [
        (False, False),
        (False, True),
        (True, True),
    ]


async def test_more_paragraphs_than_parts_are_all_said(desk: Desk):
    await desk.open()
    await desk.reply(text="\n\n".join("一二三四五六七"))
    assert desk.voice.texts == ["一", "二", "三", "四", "五\n\n六\n\n七"]


async def test_what_was_sent_is_told_in_structured_form(desk: Desk):
    await desk.open()
    facts = (await desk.reply(text="一\n\n二", set_quote=False)).structured_content
    assert (facts["msg_id"], facts["set_quote"], facts["effective_set_quote"]) == (
        "5",
        False,
        False,
    )
    assert (facts["reply_segments"], facts["target_user_name"]) == (["一", "二"], "Mei")
    assert [one["message_id"] for one in facts["send_results"]] == ["4711", "4711"]


# --- Attachments --------------------------------------------------------------------


async def test_a_picture_of_the_chat_is_attached_by_its_name(desk: Desk):
    await desk.open()
    kept = desk.files.put(picture(colour=RED))
    row = MediaRow(MediaRef("image"), kept.sha256, kept.mime, kept.size)
    await sync_to_async(record_media)([(desk.pk, [row])])
    assert (await desk.reply(text="看", attach_pic=["message:5:1"])).success
    assert desk.voice.texts == ["看[图片]"]
    assert desk.voice.colours == ["red"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tool_result:c1:1", "本会话的工具结果中没有这张图片"),
        ("message:6:1", "本会话中没有"),
        ("message:5:1", "这条消息里没有图片"),
        ("message:5:0", "attach_pic[0].path "),
        ("../secret.png", "attach_pic[0].path "),
        ("ftp://example.org/a.png", "attach_pic[0].url "),
    ],
)
async def test_a_picture_that_cannot_be_had_is_told_and_nothing_is_sent(
    desk: Desk, name: str, told: str
):
    await desk.open()
    assert told in await desk.refused(text="看", attach_pic=[name])


async def test_a_sticker_follows_the_words_and_is_counted(desk: Desk, settings: Any):
    await desk.open()
    (settings.MEDIA_DIR / "stickers" / "开心的猫.png").write_bytes(picture())
    await sync_to_async(sync_stickers)()
    assert (await desk.reply(text="好", attach_emoji="开心")).success
    assert desk.voice.texts == ["好", "[表情：开心的猫]"]
    assert (await Sticker.objects.aget()).use_count == 1


async def test_without_a_fitting_sticker_nothing_is_sent(desk: Desk):
    await desk.open()
    assert "表情库里没有可以发送的表情" in await desk.refused(text="好", attach_emoji="开心")
