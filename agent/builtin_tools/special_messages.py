"""Messages without words of their own: a face of QQ, a song, a merged forward."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from agent.builtin_tools.acts import options
from agent.builtin_tools.send_message import UNCONFIRMED, delivery_result
from agent.domain.manners import MOST_PART_CHARS
from agent.domain.types import AnswerMessage, MessagePart, PartType
from agent.run.message_sender import MessageSender
from agent.run.services import get_sender
from tools.contract import (
    InvalidArguments,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
)
from tools.functions.function_tool import NonBlank, ToolOptions, tool
from tools.registry.catalogue import DefaultConfig

SENT = "已发送"
#: Messages of one forward: clients take about as many.
MOST_NODES = 100
_Url = Annotated[str, Field(max_length=2_000)]


def _options(name: str, description: str) -> ToolOptions:
    return options(
        name,
        description=description,
        traits=("speaks",),
        default_config=DefaultConfig(enabled=False, visibility="deferred", timeout_seconds=240),
        on_timeout=UNCONFIRMED,
    )


@tool(**_options("send_face", "立即向当前会话发送一个 QQ 自带的小表情。"))
async def send_face(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    face_id: Annotated[str, "表情的编号，例如 14 是微笑", Field(pattern=r"^[0-9]{1,6}$")],
) -> ToolExecutionResult:
    return await _send(context, invocation, "face", {"id": face_id}, f"[表情:{face_id}]")


@tool(
    **_options(
        "send_music",
        "立即向当前会话分享一首歌：qq 和 163 按歌曲编号，custom 按网址。",
    )
)
async def send_music(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    type: Annotated[Literal["qq", "163", "custom"], "QQ 音乐、网易云音乐，或自己给出的网址"],
    id: Annotated[str, "歌曲编号，用于 qq 和 163", Field(pattern=r"^[0-9A-Za-z]{0,64}$")] = "",
    url: Annotated[_Url, "点开后的网址，用于 custom"] = "",
    audio: Annotated[_Url, "音频的网址，用于 custom"] = "",
    title: Annotated[str, "歌名，用于 custom", Field(max_length=200)] = "",
    image: Annotated[_Url, "封面的网址，可以不给"] = "",
) -> ToolExecutionResult:
    if type != "custom":
        if not id:
            raise InvalidArguments(["id 不能为空"])
        details = {"type": type, "id": id}
        return await _send(context, invocation, "music", details, f"[音乐:{type} {id}]")
    addresses = {"url": url, "audio": audio, **({"image": image} if image else {})}
    problems = [
        f"{name} 应为 http 或 https 地址"
        for name, address in addresses.items()
        if not _is_address(address)
    ]
    if not (name := " ".join(title.split())):
        problems.append("title 不能为空")
    if problems:
        raise InvalidArguments(problems)
    details = {"type": type, **addresses, "title": name}
    return await _send(context, invocation, "music", details, f"[音乐:{name}]")


@tool(
    **_options(
        "send_forward",
        "立即向当前会话发送一份合并转发的聊天记录，其中每条消息都是你自己说的。"
        "适合很长或分成多条的内容。",
    )
)
async def send_forward(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    messages: Annotated[
        list[Annotated[NonBlank, Field(max_length=MOST_PART_CHARS)]],
        "各条消息的文字，按顺序",
        Field(min_length=1, max_length=MOST_NODES),
    ],
) -> ToolExecutionResult:
    answers = [AnswerMessage([MessagePart("plain", text=text)], text) for text in messages]
    words = "\n".join(["[聊天记录]", *messages])
    delivery = await _sender(context).send_nodes(answers, words, tool_call_pk=invocation.call_pk)
    return delivery_result("send_forward", delivery, SENT)


async def _send(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    kind: PartType,
    details: dict[str, str],
    words: str,
) -> ToolExecutionResult:
    """Send one part, on record as ``words``."""
    part = MessagePart(kind, details=tuple(details.items()))
    delivery = await _sender(context).send([part], words, tool_call_pk=invocation.call_pk)
    return delivery_result(invocation.tool_name, delivery, f"{SENT}{words}")


def _sender(context: ToolExecutionContext) -> MessageSender:
    if (sender := get_sender(context)).chat.platform != "onebot":
        raise ToolFailed("这里只能发送文字。")
    return sender


def _is_address(text: str) -> bool:
    try:
        address = urlsplit(text)
        return address.scheme in ("http", "https") and bool(address.hostname)
    except ValueError:
        return False


TOOLS = (send_face, send_music, send_forward)
