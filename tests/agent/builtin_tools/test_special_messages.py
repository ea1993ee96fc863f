"""Faces, songs and forwards: what is sent, what is on record, and what is refused."""

from typing import Any, cast

import pytest

from agent.builtin_tools import special_messages
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.types import ChatAddress
from agent.run.services import RunServices
from onebot.protocol.actions import forward_nodes
from onebot.protocol.segments import segments_from_parts
from tests.agent.builtin_tools.test_send_message import Voice
from tests.agent.talk import GROUP
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

SONG = {"type": "custom", "url": "https://a/", "audio": "http://a/b.mp3", "title": " 晴\n天 "}


class ForwardingVoice(Voice):
    async def send_nodes(self, messages: Any, text: str, *, tool_call_pk: int) -> Any:
        return await self.send([one.parts[0] for one in messages], text, tool_call_pk=tool_call_pk)


async def send(
    voice: Voice, tool: str, chat: ChatAddress = GROUP, **arguments: Any
) -> ToolExecutionResult:
    registry = ToolRegistry(lambda: {tool: ToolSettings(tool)})
    registry.register_provider(MaisakaBuiltinToolProvider(special_messages.TOOLS))
    voice.chat = chat
    context = ToolExecutionContext(
        session_id=chat.address, services=RunServices(sender=cast("Any", voice))
    )
    return await registry.invoke(ToolInvocation(tool, arguments, call_pk=5), context)


@pytest.mark.parametrize(
    ("tool", "arguments", "segment", "words"),
    [
        ("send_face", {"face_id": "14"}, ("face", {"id": "14"}), "[表情:14]"),
        (
            "send_music",
            {"type": "163", "id": 28_949_129},
            ("music", {"type": "163", "id": "28949129"}),
            "[音乐:163 28949129]",
        ),
        ("send_music", SONG, ("music", {**SONG, "title": "晴 天"}), "[音乐:晴 天]"),
    ],
)
async def test_message_without_words_is_one_segment(tool, arguments, segment, words):
    voice = ForwardingVoice()
    assert (await send(voice, tool, **arguments)).success
    ((parts, text, call_pk),) = voice.said
    assert segments_from_parts(parts) == [{"type": segment[0], "data": segment[1]}]
    assert (text, call_pk) == (words, 5)


async def test_forward_is_of_the_bots_own_words():
    voice = ForwardingVoice()
    assert (await send(voice, "send_forward", messages=["一", "[CQ:at,qq=all]"])).success
    ((parts, text, _),) = voice.said
    assert text == "[聊天记录]\n一\n[CQ:at,qq=all]"
    nodes = forward_nodes("10001", "bot", [segments_from_parts([part]) for part in parts])
    assert [node["data"]["user_id"] for node in nodes] == ["10001", "10001"]
    assert nodes[1]["data"]["content"] == [{"type": "text", "data": {"text": "[CQ:at,qq=all]"}}]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("send_face", {"face_id": "smile"}),
        ("send_face", {"face_id": "1,id=2"}),
        ("send_music", {"type": "qq"}),
        ("send_music", {"type": "qq", "id": "1/../2"}),
        ("send_music", {**SONG, "url": "file:///etc/passwd"}),
        ("send_music", {**SONG, "audio": "http://[::1"}),
        ("send_music", {**SONG, "image": "javascript:1"}),
        ("send_music", {**SONG, "title": " "}),
        ("send_forward", {"messages": []}),
        ("send_forward", {"messages": ["a", " "]}),
        ("send_forward", {"messages": ["a"] * 101}),
        ("send_forward", {"messages": ["a" * 4_501]}),
    ],
)
async def test_what_cannot_be_meant_is_not_sent(tool, arguments):
    voice = ForwardingVoice()
    assert not (await send(voice, tool, **arguments)).success
    assert voice.said == []


@pytest.mark.parametrize("tool", ["send_face", "send_forward"])
async def test_terminal_shows_words_alone(tool):
    voice, terminal = ForwardingVoice(), ChatAddress("t", "private", "local", "terminal")
    arguments = {"face_id": "1"} if tool == "send_face" else {"messages": ["a"]}
    assert "只能发送文字" in (await send(voice, tool, terminal, **arguments)).error_message
    assert voice.said == []
