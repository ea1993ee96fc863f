"""``send_message``: the model speaks before its run is over, with pictures, mentions, quotes and
files."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from agent.builtin_tools.entry import BuiltinTool
from agent.builtin_tools.mentions import check_mention
from agent.domain.states import MessageState
from agent.domain.types import Delivery, MessagePart, PartType
from agent.media import media_folder
from agent.run.message_sender import MessageSender
from tools.contract import JsonSchema, ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.errors import InvalidArguments

NAME = "send_message"
CONFIRMED = "消息已发送"
UNCONFIRMED = "消息可能已送达，请勿重发"
REST_IS_SENT = "其余内容已发送或可能已送达，请勿重发"
#: Characters of a message that name it where only some of several could be sent.
NAME_LENGTH = 40
MEDIA = ("image", "record", "video", "file")
TYPES = ("plain", *MEDIA, "mention_user", "quote")

PARAMETERS: JsonSchema = {
    "type": "object",
    "properties": {
        "messages": {
            "type": "array",
            "minItems": 1,
            "description": "消息片段，按顺序组成一条消息；文件会在其余内容之后单独发送",
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
                    "path": {
                        "type": "string",
                        "description": "媒体文件夹内的文件路径（相对路径），用于图片、语音、视频、文件",
                    },
                    "url": {"type": "string", "description": "媒体的 http(s) 地址，优先于 path"},
                    "mention_user_id": {
                        "type": "string",
                        "description": "要 @ 的用户 ID（数字），type 为 mention_user 时必填",
                    },
                    "message_id": {
                        "type": "string",
                        "description": "要引用的消息 ID，type 为 quote 时必填",
                    },
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


async def send_message(
    invocation: ToolInvocation, context: ToolExecutionContext
) -> ToolExecutionResult:
    """Send to the run's own chat, and tell the model what the client said to it."""
    speaker = cast("MessageSender", context.metadata["speaker"])
    arguments = invocation.arguments
    if faults := check_message_arguments(arguments, context):
        raise InvalidArguments(faults)
    parts = [parse_message_part(item) for item in arguments["messages"]]
    said = []
    for message in _messages(parts):
        text = _as_text(message)
        said.append(
            (
                text,
                await speaker.send(message, text, tool_call_pk=invocation.metadata["tool_call_pk"]),
            )
        )
    return _result(said)


def _messages(parts: list[MessagePart]) -> list[list[MessagePart]]:
    """``parts`` as messages: files travel alone, behind all the rest.

    A quote with nothing but files is left out, for a file cannot quote.
    """
    files = [[part] for part in parts if part.type == "file"]
    rest = [part for part in parts if part.type != "file"]
    return files if files and all(part.type == "quote" for part in rest) else [rest, *files]


def _result(said: list[tuple[str, Delivery]]) -> ToolExecutionResult:
    """What the model is told of the messages sent, each with its text: never to send again what may
    be there."""
    states = {delivery.state for _, delivery in said}
    if MessageState.FAILED not in states:
        return ToolExecutionResult(
            NAME, success=True, content=UNCONFIRMED if MessageState.UNKNOWN in states else CONFIRMED
        )
    failed = [
        (text, delivery.error) for text, delivery in said if delivery.state == MessageState.FAILED
    ]
    names = [f" {text[:NAME_LENGTH]}" if len(said) > 1 else "" for text, _ in failed]
    lines = [f"消息发送失败{name}: {error}" for name, (_, error) in zip(names, failed, strict=True)]
    lines += [REST_IS_SENT] if len(failed) < len(said) else []
    return ToolExecutionResult(NAME, success=False, error_message="\n".join(lines))


def check_message_arguments(
    arguments: Mapping[str, Any], context: ToolExecutionContext
) -> list[str]:
    """What is wrong with ``arguments``, but for what their schema says."""
    items = arguments.get("messages")
    known = _session_faults(
        arguments.get("session"), cast("MessageSender", context.metadata["speaker"])
    )
    return [*known, *(_item_faults(items, context) if isinstance(items, list) else ())]


def _session_faults(session: object, speaker: MessageSender) -> list[str]:
    if not isinstance(session, str) or session.strip() in (
        "",
        speaker.chat.address,
        speaker.chat.key,
    ):
        return []
    return [f"session 只能是当前会话 {speaker.chat.address}，不允许发送到其他会话"]


def _item_faults(items: Sequence[Any], context: ToolExecutionContext) -> list[str]:
    of_known_type = (
        (place, item)
        for place, item in enumerate(items)
        if isinstance(item, dict) and item.get("type") in TYPES
    )
    found = (
        (place, check_message_item(item) or _mention_fault(item, context))
        for place, item in of_known_type
    )
    return [f"messages[{place}]{fault}" for place, fault in found if fault]


def _mention_fault(item: dict[str, Any], context: ToolExecutionContext) -> str:
    fault = (
        check_mention(_given(item, "mention_user_id"), context)
        if item["type"] == "mention_user"
        else ""
    )
    return f".mention_user_id{fault}" if fault else ""


def check_message_item(item: dict[str, Any]) -> str:
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
    target = media_folder.locate_media_file(path)
    if target is None:
        return ".path 不在媒体文件夹内，不允许发送"
    size = media_folder.regular_file_size(target)
    if size is None:
        return ".path 指向的文件不存在，或者不是普通文件"
    return "" if size else ".path 指向的文件是空的，无法发送"


def _given(item: dict[str, Any], key: str) -> str:
    return str(item.get(key) or "").strip()


def parse_message_part(item: dict[str, Any]) -> MessagePart:
    path = _given(item, "path")
    return MessagePart(
        type=cast("PartType", item["type"]),
        text=item.get("text") or "",
        path=str(media_folder.locate_media_file(path)) if path and not _given(item, "url") else "",
        url=_given(item, "url"),
        mention_user_id=_given(item, "mention_user_id"),
        message_id=_given(item, "message_id"),
    )


WORDS: dict[str, Callable[[MessagePart], str]] = {
    "plain": lambda part: part.text,
    "mention_user": lambda part: f"[@{part.mention_user_id}]",
    "quote": lambda part: f"[回复:{part.message_id}]",
    "image": lambda _: "[图片]",
    "record": lambda _: "[语音]",
    "video": lambda _: "[视频]",
    "file": lambda part: f"[文件:{(part.url or part.path).rsplit('/', 1)[-1]}]",
}


def _as_text(parts: Sequence[MessagePart]) -> str:
    """The message as the record and later model calls read it."""
    return "".join(WORDS[part.type](part) for part in parts).strip()


TOOL = BuiltinTool(
    name=NAME,
    description="立即向当前会话发送一条消息，可以组合文本、@、引用、图片、语音、视频和文件。"
    "适合在较慢的操作之前先告知用户，或发送纯文本以外的内容；最终回答不需要用它发送。",
    parameters=PARAMETERS,
    handler=send_message,
    needs_chat=True,
    timeout_seconds=240,
    on_timeout=UNCONFIRMED,
    own_faults=check_message_arguments,
)
