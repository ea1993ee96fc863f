"""The tool ``send_message``: into the run's own chat, at once, and nowhere else."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async

from agent.builtin_tools import send_message
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.chat.conversation import ConversationHandler
from agent.domain.errors import MediaError
from agent.domain.states import PauseReason
from agent.domain.types import AnswerMessage, ChatAddress, Delivery, MessagePart
from agent.models import Message, ToolCall
from agent.record.record import Record
from agent.run.engine import Engine, PersonaEngines
from agent.run.jobs import BackgroundCalls
from agent.run.services import RunServices
from tests.agent.talk import GROUP, PRIVATE, Mailbox, Script, arrival, calling, message
from tests.environment import PATIENCE
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.registry.registry import ToolRegistry

State = Message.State
HELLO = {"type": "plain", "text": "hello"}


class Voice:
    """A speaker that only remembers; its words come out as ``delivery`` says, files as
    ``of_files``."""

    chat = GROUP
    part_limit = 1_999

    def __init__(self) -> None:
        self.said: list[tuple[list[MessagePart], str, int]] = []
        self.delivery = self.of_files = Delivery(State.DELIVERED)

    async def send(self, parts: list[MessagePart], text: str, *, tool_call_pk: int) -> Delivery:
        self.said.append((parts, text, tool_call_pk))
        return self.of_files if parts[0].type == "file" else self.delivery

    async def send_each(
        self, messages: Sequence[AnswerMessage], *, tool_call_pk: int
    ) -> AsyncIterator[Delivery]:
        for parts, text in messages:
            yield (sent := await self.send(parts, text, tool_call_pk=tool_call_pk))
            if sent.state == State.FAILED:
                return


@pytest.fixture
def voice() -> Voice:
    return Voice()


@pytest.fixture
def media(settings, tmp_path):
    """The media folder, with one picture in it and one file outside."""
    settings.MEDIA_DIR = tmp_path / "media"
    settings.MEDIA_DIR.mkdir()
    (settings.MEDIA_DIR / "cat.png").write_bytes(b"cat")
    (tmp_path / "secret_key").write_text("secret")
    return settings.MEDIA_DIR


def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_provider(MaisakaBuiltinToolProvider([send_message.send_message]))
    return registry


async def send(voice: Voice, *items: Any, **arguments: Any) -> ToolExecutionResult:
    """Call the tool as the run loop does."""
    context = ToolExecutionContext(
        session_id=GROUP.address,
        stream_id=GROUP.address,
        services=RunServices(sender=cast("Any", voice)),
    )
    call = ToolInvocation("send_message", {"messages": list(items), **arguments}, call_pk=5)
    return await registry().invoke(call, context)


async def problems(voice: Voice, *items: Any, **arguments: Any) -> str:
    """What the model is told of a call that must not send anything."""
    result = await send(voice, *items, **arguments)
    assert (result.success, voice.said) == (False, [])
    return result.error_message


# --- What is sent -------------------------------------------------------------------


async def test_every_kind_of_item_becomes_a_part_in_its_place(voice, media):
    items = [
        {"type": "quote", "message_id": "-7"},
        {"type": "mention_user", "mention_user_id": "20001"},
        {"type": "plain", "text": " look "},
        {"type": "image", "url": "https://example.org/a.png"},
        {"type": "video", "path": "cat.png"},
    ]
    assert (await send(voice, *items)).success
    ((parts, text, call),) = voice.said
    assert parts == [
        MessagePart("quote", message_id="-7"),
        MessagePart("mention_user", mention_user_id="20001"),
        MessagePart("plain", text=" look "),
        MessagePart("image", url="https://example.org/a.png"),
        MessagePart("video", path=str(media / "cat.png")),
    ]
    assert (text, call) == ("[回复:-7][@20001] look [图片][视频]", 5)


@pytest.mark.parametrize("said", ["<think>hm</think>你好", "[THINK]hm[/THINK]\n你好", "你好"])
async def test_thoughts_are_not_sent(voice, said):
    assert (await send(voice, {"type": "plain", "text": said})).success
    ((parts, text, _),) = voice.said
    assert ([part.text for part in parts], text) == (["你好"], "你好")


async def test_files_travel_alone_behind_the_rest(voice, media):
    picture = {"type": "image", "path": "cat.png"}
    await send(
        voice,
        {"type": "file", "path": "cat.png"},
        HELLO,
        {"type": "file", "url": "https://h.example/b.pdf"},
        picture,
    )
    assert [(text, call) for _, text, call in voice.said] == [
        ("hello[图片]", 5),
        ("[文件:cat.png]", 5),
        ("[文件:b.pdf]", 5),
    ]


async def test_a_quote_is_left_out_when_there_are_only_files_to_quote_with(voice, media):
    await send(voice, {"type": "quote", "message_id": "-7"}, {"type": "file", "path": "cat.png"})
    assert [text for _, text, _ in voice.said] == ["[文件:cat.png]"]


@pytest.mark.parametrize("kind", ["image", "record", "video", "file"])
async def test_an_address_wins_over_a_path(voice, media, kind):
    await send(voice, {"type": kind, "url": "http://example.org/x", "path": "cat.png"})
    assert voice.said[0][0] == [MessagePart(kind, url="http://example.org/x")]


@pytest.mark.parametrize("session", ["", " ", "onebot:group:30001", "group:30001"])
async def test_the_runs_own_chat_may_be_named_or_not(voice, session):
    assert (await send(voice, HELLO, session=session)).success


async def test_a_chat_of_another_platform_is_named_by_its_address(voice):
    voice.chat = ChatAddress("terminal", "private", "local", platform="terminal")
    assert (await send(voice, HELLO, session=voice.chat.address)).success
    assert not (await send(voice, HELLO, session="onebot:private:local")).success


@pytest.mark.parametrize(
    ("state", "success", "told"),
    [
        (State.DELIVERED, True, "消息已发送"),
        (State.UNKNOWN, True, "消息可能已送达，请勿重发"),
        (State.FAILED, False, "bot is muted"),
    ],
)
async def test_the_model_is_told_what_the_client_said(voice, state, success, told):
    voice.delivery = Delivery(state, error="bot is muted")
    result = await send(voice, HELLO)
    assert result.success is success
    assert told in result.get_history_content()


async def test_of_several_messages_the_failed_one_is_named_and_the_rest_not_to_be_sent_again(
    voice, media
):
    voice.of_files = Delivery(State.FAILED, error="no space left in the group")
    result = await send(voice, HELLO, {"type": "file", "path": "cat.png"})
    assert not result.success
    assert result.error_message.removeprefix("工具执行失败: ").splitlines() == [
        "消息发送失败 [文件:cat.png]: no space left in the group",
        "其余内容已发送或可能已送达，请勿重发",
    ]


async def test_of_several_messages_one_of_unknown_outcome_makes_the_whole_unconfirmed(voice, media):
    voice.delivery = Delivery(State.UNKNOWN)
    assert (
        await send(voice, HELLO, {"type": "file", "path": "cat.png"})
    ).content == "消息可能已送达，请勿重发"


# --- What is refused ----------------------------------------------------------------


@pytest.mark.parametrize(
    "session", ["onebot:group:30002", "onebot:private:30001", "private:30001", "30001", "*"]
)
async def test_another_chat_is_refused_with_a_reason(voice, session):
    assert "onebot:group:30001" in await problems(voice, HELLO, session=session)


@pytest.mark.parametrize(
    "path",
    [
        "../secret_key",
        "/etc/passwd",
        "a/../../secret_key",
        "cat.png/../../secret_key",
        "\0",
        "file:///etc/passwd",
    ],
)
async def test_a_file_outside_the_media_folder_is_refused(voice, media, path):
    assert "messages[0].path" in await problems(voice, {"type": "image", "path": path})


async def test_a_link_that_leads_out_of_the_media_folder_is_refused(voice, media):
    (media / "link").symlink_to(media.parent / "secret_key")
    assert "媒体文件夹" in await problems(voice, {"type": "file", "path": "link"})


@pytest.mark.parametrize("path", ["missing.png", ".", "~/x", "x" * 5000, "pipe"])
async def test_a_file_that_is_none_is_named(voice, media, path):
    os.mkfifo(media / "pipe")
    assert "不存在" in await problems(voice, {"type": "image", "path": path})


async def test_an_empty_file_is_refused(voice, media):
    (media / "empty.png").touch()
    assert "空的" in await problems(voice, {"type": "image", "path": "empty.png"})


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://h/x", "base64://AAAA", "javascript:x", "//h/x", "cat.png"]
)
async def test_an_address_that_is_not_of_the_web_is_refused(voice, url):
    assert "messages[0].url" in await problems(voice, {"type": "image", "url": url})


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"type": "plain"}, "messages[0].text 不能为空"),
        ({"type": "plain", "text": "  "}, "messages[0].text 不能为空"),
        ({"type": "plain", "text": "<think>hm</think>\n"}, "messages[0].text 不能为空"),
        ({"type": "mention_user"}, "messages[0].mention_user_id 不能为空"),
        ({"type": "quote", "message_id": ""}, "messages[0].message_id 不能为空"),
        ({"type": "image"}, "messages[0]"),
        ({"type": "poke"}, "messages[0].type"),
        ({"text": "x"}, "messages[0].type"),
        ("hello", "messages[0]"),
    ],
)
async def test_what_is_wrong_with_an_item_is_named_by_its_place(voice, item, problem):
    assert problem in await problems(voice, item)


async def test_every_problem_is_named_and_nothing_is_sent_of_a_message_with_one(voice):
    told = await problems(
        voice, HELLO, {"type": "plain"}, {"type": "quote"}, session="onebot:group:1"
    )
    assert len(told.splitlines()) == 3
    assert "messages[1]" in told
    assert "messages[2]" in told


async def test_problems_that_the_schema_finds_hide_no_others(voice):
    items = [
        HELLO,
        {"type": "poke"},
        {"type": "plain"},
        {"text": "x"},
        {"type": "image", "url": {}},
        "x",
        {"type": "quote"},
    ]
    told = await problems(voice, *items, session="onebot:group:1")
    assert [line.partition(" ")[0] for line in sorted(told.splitlines())] == [
        "messages[1].type",
        "messages[2].text",
        "messages[3].type",
        "messages[4].url",
        "messages[5]",
        "messages[6].message_id",
        "session",
    ]


async def test_a_list_that_is_none_is_one_problem(voice):
    call = ToolInvocation("send_message", '{"messages": 5}', call_pk=5)  # type: ignore[arg-type]
    result = await registry().invoke(
        call,
        ToolExecutionContext(
            session_id=GROUP.address, services=RunServices(sender=cast("Any", voice))
        ),
    )
    assert result.error_message.splitlines() == ["messages 应为数组"]


async def test_a_message_without_items_is_refused(voice):
    assert "messages" in await problems(voice)


@pytest.mark.parametrize(("session_id", "offered"), [("onebot:group:7", True), ("", False)])
async def test_it_is_offered_only_where_there_is_a_chat(session_id, offered):
    tools = await registry().list_tools(ToolAvailabilityContext(session_id=session_id))
    assert bool(tools) is offered


# --- On record ----------------------------------------------------------------------


async def answered(record: Record, mailbox: Mailbox, *answers: Any) -> Script:
    """One message of a private chat, answered by a script that may call the tool."""
    model = Script(*answers)
    said = message("hi")
    accepted = await record.submit_batched(record.arrivals.accept_messages, arrival(said))
    await ConversationHandler(
        record,
        PersonaEngines(Engine(model, registry())),
        mailbox,
        BackgroundCalls(record, lambda _account: None),
    ).answer_message(accepted.to_pending(said))
    return model


@sync_to_async
def rows() -> list[tuple[str, str, bool, bool]]:
    """Text, state, whether a tool said it, whether it is history."""
    found = Message.objects.order_by("pk").values_list("text", "state", "tool_call", "in_history")
    return [(text, state, call is not None, heard) for text, state, call, heard in found]


ANNOUNCE = calling(("send_message", '{"messages": [{"type": "plain", "text": "wait"}]}'))


async def test_it_speaks_before_the_run_goes_on(record):
    mailbox = Mailbox()
    model = await answered(record, mailbox, ANNOUNCE, "done")
    assert mailbox.sent == [(PRIVATE, "wait"), (PRIVATE, "done")]
    assert model.requests[1].messages[-1]["content"] == "消息已发送"
    assert await rows() == [
        ("hi", "answered", False, True),
        ("wait", "delivered", True, True),
        ("done", "delivered", False, True),
    ]


async def test_a_run_that_only_spoke_by_tool_has_answered(record):
    mailbox = Mailbox()
    await answered(record, mailbox, ANNOUNCE, "")
    assert await rows() == [("hi", "answered", False, True), ("wait", "delivered", True, True)]


async def test_a_run_whose_only_words_the_client_refused_has_failed(record):
    await answered(record, Mailbox("failed", "muted"), ANNOUNCE, "", "")
    assert (await rows())[:2] == [("hi", "failed", False, False), ("wait", "failed", True, False)]


async def test_each_message_is_kept_with_the_call_that_sent_it(record):
    twice = calling(*[("send_message", '{"messages": [{"type": "plain", "text": "wait"}]}')] * 2)
    await answered(record, Mailbox(), twice, "")
    calls = await sync_to_async(
        lambda: [call.messages.get().text for call in ToolCall.objects.order_by("pk")]
    )()
    assert calls == ["wait", "wait"]


LONG = "第一段。" * 400 + "\n\n" + "第二段。" * 400 + "\n\n" + "第三段。" * 400
PARTS = LONG.split("\n\n")
SAY_LONG = calling(
    ("send_message", json.dumps({"messages": [{"type": "plain", "text": LONG}]})),
)


class FickleMailbox(Mailbox):
    """A client whose answer to the message at each place is scripted, then good."""

    def __init__(self, *deliveries: Delivery) -> None:
        super().__init__()
        self.deliveries = list(deliveries)

    async def deliver(self, *args: Any, **fields: Any) -> Delivery:
        usual = await super().deliver(*args, **fields)
        return self.deliveries.pop(0) if self.deliveries else usual


async def test_a_long_text_is_several_messages_with_one_result(record):
    mailbox = Mailbox()
    model = await answered(record, mailbox, SAY_LONG, "done")
    assert mailbox.texts == [*PARTS, "done"]
    assert model.requests[1].messages[-1]["content"] == "消息已发送"
    assert (await rows())[1:4] == [(part, "delivered", True, True) for part in PARTS]


async def test_a_refused_part_is_told_and_no_other_is_sent(record):
    good, muted = Delivery(State.DELIVERED, "1"), Delivery(State.FAILED, error="被禁言了")
    mailbox = FickleMailbox(good, muted)
    model = await answered(record, mailbox, SAY_LONG, "done")
    assert mailbox.texts == [*PARTS[:2], "done"]
    told = (
        "第 2 条（共 3 条）发送失败: 被禁言了；之前的已发送或可能已送达，请勿重发；之后的没有发送"
    )
    assert told in model.requests[1].messages[-1]["content"]
    assert [row[1] for row in (await rows())[1:4]] == ["delivered", "failed", "failed"]


async def test_a_part_of_unknown_outcome_is_told_and_the_others_are_sent(record):
    mailbox = FickleMailbox(Delivery(State.UNKNOWN, error="no answer"))
    model = await answered(record, mailbox, SAY_LONG, "done")
    assert mailbox.texts == [*PARTS, "done"]
    assert model.requests[1].messages[-1]["content"] == "消息可能已送达，请勿重发"


async def test_the_parts_that_a_cancelled_call_had_not_sent_are_not_sent(record):
    mailbox = Mailbox()
    mailbox.silent = True
    speaking = asyncio.create_task(answered(record, mailbox, SAY_LONG))
    async with asyncio.timeout(PATIENCE):
        while not any(row[1] == "sent" for row in await rows()):
            pass
    speaking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await speaking
    await record.submit_batched(lambda items: items, None)
    assert mailbox.texts in ([], PARTS[:1])
    outcome = "unknown" if mailbox.sent else "failed"
    assert [row[1] for row in (await rows())[1:4]] == [outcome, "failed", "failed"]


async def cancelled(record: Record, mailbox: Mailbox, state: str) -> None:
    """Begin to speak by tool, and be cancelled once the message is on record in ``state``."""
    speaking = asyncio.create_task(answered(record, mailbox, ANNOUNCE))
    async with asyncio.timeout(PATIENCE):
        while not any(row[:2] == ("wait", state) for row in await rows()):
            pass
    speaking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await speaking
    async with asyncio.timeout(PATIENCE):
        while any(row[:2] == ("wait", state) for row in await rows()):
            pass


async def test_words_whose_run_ends_before_the_client_answers_are_unknown(record):
    mailbox = Mailbox()
    mailbox.silent = True
    await cancelled(record, mailbox, "sent")
    # Cancelled before the frame was written, or while the answer is awaited: which one it was is on
    # record.
    assert (await rows())[-1] in [("wait", "unknown", True, True), ("wait", "failed", True, False)]


async def test_words_whose_run_ends_before_a_client_is_there_were_not_said(record):
    mailbox = Mailbox()
    mailbox.connected.clear()
    await cancelled(record, mailbox, "pending")
    assert mailbox.sent == []
    assert (await rows())[-1] == ("wait", "failed", True, False)


async def test_words_for_a_client_that_does_not_come_were_not_said_and_the_model_is_told(
    record, monkeypatch
):
    monkeypatch.setattr("agent.run.message_sender.TOOL_PATIENCE", 0.01)
    monkeypatch.setattr("agent.run.message_sender.ANSWER_PATIENCE", 0.01)
    mailbox = Mailbox()
    mailbox.connected.clear()
    model = await answered(record, mailbox, ANNOUNCE, "done")
    assert "the account is not connected" in model.requests[1].messages[-1]["content"]
    assert (await rows())[:2] == [("hi", "failed", False, False), ("wait", "failed", True, False)]


# --- In another form ----------------------------------------------------------------


class Fussy(Mailbox):
    """A way out that takes a message only in the form that ``remake`` gives it."""

    def __init__(self, remake: Any) -> None:
        super().__init__()
        self.refusal = Delivery(State.FAILED, error="no such address", fallback=remake)
        self.echoes: list[str] = []

    async def deliver(
        self, chat: Any, segments: list[dict[str, Any]], *, echo: str, temp_group_id: str = ""
    ) -> Delivery:
        self.echoes.append(echo)
        said = await super().deliver(chat, segments, echo=echo)
        return self.refusal if segments[0]["text"] == "wait" else said


async def other_form() -> list[dict[str, Any]]:
    return [{"type": "plain", "text": "in another form"}]


@sync_to_async
def last_row() -> Message:
    return Message.objects.latest("pk")


async def test_a_refused_message_is_sent_in_another_form_under_its_own_echo_and_recorded_as_it_was(
    record,
):
    mailbox = Fussy(other_form)
    await answered(record, mailbox, ANNOUNCE, "")
    row = await last_row()
    assert mailbox.texts == ["wait", "in another form"]
    assert (row.state, row.echo, row.segments) == (
        "delivered",
        mailbox.echoes[1],
        [{"type": "plain", "text": "wait"}],
    )
    assert len(set(mailbox.echoes)) == 2
    assert "no such address" in row.detail


async def test_the_other_form_is_the_last_one_tried(record):
    mailbox = Fussy(other_form)
    mailbox.delivery = replace(mailbox.refusal, error="too large")
    model = await answered(record, mailbox, ANNOUNCE, "done")
    assert mailbox.texts[:3] == ["wait", "in another form", "done"]
    assert ("wait", "failed", True, False) in await rows()
    assert "no such address; as Base64: too large" in model.requests[1].messages[-1]["content"]


async def test_where_the_other_form_finds_the_account_muted_nothing_more_is_tried(record):
    mailbox = Fussy(other_form)
    mailbox.delivery = Delivery(State.FAILED, error="120", pause=PauseReason.MUTED)
    await answered(record, mailbox, "wait")
    assert mailbox.texts == ["wait", "in another form"]


async def test_a_form_that_cannot_be_made_is_not_sent_and_the_model_is_told_why(record):
    async def nothing() -> list[dict[str, Any]]:
        raise MediaError("the file is gone")

    mailbox = Fussy(nothing)
    model = await answered(record, mailbox, ANNOUNCE, "done")
    assert mailbox.texts == ["wait", "done"]
    assert "no such address; the file is gone" in model.requests[1].messages[-1]["content"]


async def test_a_message_whose_run_ends_while_it_is_made_anew_stays_refused(record):
    begun = asyncio.Event()

    async def never() -> list[dict[str, Any]]:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    speaking = asyncio.create_task(answered(record, Fussy(never), ANNOUNCE))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    speaking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await speaking
    await record.submit_batched(lambda items: items, None)
    assert ((await last_row()).state, (await last_row()).detail) == ("failed", "no such address")
