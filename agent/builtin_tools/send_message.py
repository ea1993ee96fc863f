"""``send_message``: the model speaks before its run is over, with pictures, mentions and quotes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings

from agent.builtin_tools.entry import BuiltinTool
from agent.models import Message
from agent.speaker import Speaker
from agent.types import Delivery, Part, PartType
from tools.contract import JsonSchema, ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.errors import InvalidArguments

NAME = "send_message"
CONFIRMED = "消息已发送"
UNCONFIRMED = "消息可能已送达，请勿重发"
MEDIA = ("image", "record", "video", "file")
TYPES = ("plain", *MEDIA, "mention_user", "quote")

PARAMETERS: JsonSchema = {
    "type": "object",
    "properties": {
        "messages": {
            "type": "array",
            "minItems": 1,
            "description": "消息片段，按顺序组成一条消息",
            "items": {
                "type": "object",
                "properties": {
                    "type": {
                        "type": "string",
                        "enum": list(TYPES),
                        "description": "片段类型：plain 文本，image 图片，record 语音，video 视频，file 文件，"
                        "mention_user @某人，quote 引用某条消息",
                    },
                    "text": {"type": "string", "description": "文本内容，type 为 plain 时必填"},
                    "path": {"type": "string", "description": "媒体文件夹内的文件路径，用于图片、语音、视频、文件"},
                    "url": {"type": "string", "description": "媒体的 http(s) 地址，优先于 path"},
                    "mention_user_id": {"type": "string", "description": "要 @ 的用户 ID，type 为 mention_user 时必填"},
                    "message_id": {"type": "string", "description": "要引用的消息 ID，type 为 quote 时必填"},
                },
                "required": ["type"],
            },
        },
        "session": {
            "type": "string",
            "description": "目标会话 platform_id:message_type:session_id，默认为当前会话，只能是当前会话",
        },
    },
    "required": ["messages"],
}


async def send_message(invocation: ToolInvocation, context: ToolExecutionContext) -> ToolExecutionResult:
    """Send to the run's own chat, and tell the model what the client said to it."""
    speaker = cast("Speaker", context.metadata["speaker"])
    arguments = invocation.arguments
    faults = [*_session_faults(arguments.get("session", ""), speaker), *_item_faults(arguments["messages"])]
    if faults:
        raise InvalidArguments(faults)
    parts = [_part(item) for item in arguments["messages"]]
    delivery = await speaker.say(parts, _as_text(parts), tool_call_pk=invocation.metadata["tool_call_pk"])
    return _result(delivery)


def _result(delivery: Delivery) -> ToolExecutionResult:
    match delivery.state:
        case Message.State.DELIVERED:
            return ToolExecutionResult(NAME, success=True, content=CONFIRMED)
        case Message.State.UNKNOWN:
            return ToolExecutionResult(NAME, success=True, content=UNCONFIRMED)
        case _:
            return ToolExecutionResult(NAME, success=False, error_message=f"消息发送失败: {delivery.error}")


def _session_faults(session: str, speaker: Speaker) -> list[str]:
    if session.strip() in ("", speaker.chat.address, speaker.chat.key):
        return []
    return [f"session 只能是当前会话 {speaker.chat.address}，不允许发送到其他会话"]


def _item_faults(items: Sequence[dict[str, Any]]) -> list[str]:
    found = ((place, _item_fault(item)) for place, item in enumerate(items))
    return [f"messages[{place}]{fault}" for place, fault in found if fault]


def _item_fault(item: dict[str, Any]) -> str:
    """What is wrong with one item, as the end of a sentence that begins with its place."""
    kind = item["type"]
    needed = {"plain": "text", "mention_user": "mention_user_id", "quote": "message_id"}.get(kind)
    if needed:
        return "" if _given(item, needed) else f".{needed} 不能为空"
    if url := _given(item, "url"):
        return "" if urlsplit(url).scheme in ("http", "https") else ".url 只能是 http 或 https 地址"
    if path := _given(item, "path"):
        return _path_fault(path)
    return " 需要 path 或 url"


def _path_fault(path: str) -> str:
    """Only files of the media folder may leave the machine, whatever the model asks for."""
    target = media_path(path)
    if target is None:
        return ".path 不在媒体文件夹内，不允许发送"
    return "" if _is_file(target) else ".path 指向的文件不存在"


def _is_file(target: Path) -> bool:
    try:
        return target.is_file()
    except OSError:  # a name that is too long
        return False


def media_path(path: str) -> Path | None:
    """``path`` with links resolved, relative to the media folder; None when it leads out of it."""
    folder = Path(settings.MEDIA_DIR).resolve()
    try:
        target = (folder / path).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return target if target.is_relative_to(folder) else None


def _given(item: dict[str, Any], key: str) -> str:
    return str(item.get(key) or "").strip()


def _part(item: dict[str, Any]) -> Part:
    path = _given(item, "path")
    return Part(
        type=cast("PartType", item["type"]),
        text=item.get("text") or "",
        path=str(media_path(path)) if path and not _given(item, "url") else "",
        url=_given(item, "url"),
        mention_user_id=_given(item, "mention_user_id"),
        message_id=_given(item, "message_id"),
    )


WORDS: dict[str, Callable[[Part], str]] = {
    "plain": lambda part: part.text,
    "mention_user": lambda part: f"[@{part.mention_user_id}]",
    "quote": lambda part: f"[回复:{part.message_id}]",
    "image": lambda _: "[图片]",
    "record": lambda _: "[语音]",
    "video": lambda _: "[视频]",
    "file": lambda part: f"[文件:{(part.url or part.path).rsplit('/', 1)[-1]}]",
}


def _as_text(parts: Sequence[Part]) -> str:
    """The message as the record and later model calls read it."""
    return "".join(WORDS[part.type](part) for part in parts).strip()


TOOL = BuiltinTool(
    name=NAME,
    description="立即向当前会话发送一条消息，可以组合文本、@、引用、图片、语音、视频和文件。"
    "适合在较慢的操作之前先告知用户，或发送纯文本以外的内容；最终回答不需要用它发送。",
    parameters=PARAMETERS,
    handler=send_message,
    needs_chat=True,
    timeout_seconds=90,
    on_timeout=UNCONFIRMED,
)
