"""``send_message``: the model speaks before its run is over, with pictures, mentions, quotes and
files. Also the shared parts of tools that send: who may be mentioned, and the result of a delivery
for the model."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

from pydantic import WithJsonSchema

from agent.domain.answer_parts import may_be_person, split_message
from agent.domain.states import MessageState
from agent.domain.types import (
    AnswerMessage,
    ChatAddress,
    ChatKind,
    Delivery,
    MessagePart,
    PartType,
)
from agent.llm.answers.thoughts import split_thoughts
from agent.media import media_folder
from agent.run.message_sender import MessageSender
from agent.run.services import get_sender
from tools.contract import (
    JsonSchema,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
)
from tools.functions.function_tool import tool
from tools.registry.catalogue import DefaultConfig
from tools.registry.policy import is_chat_manager

CONFIRMED = "消息已发送"
UNCONFIRMED = "消息可能已送达，请勿重发"
REST_IS_SENT = "其余内容已发送或可能已送达，请勿重发"
EVERYBODY = "all"
#: Other chats that a refusal names.
OTHERS_NAMED = 10
#: Characters of a message that name it where only some of several could be sent.
NAME_LENGTH = 40
MEDIA = ("image", "record", "video", "file")
TYPES = ("plain", *MEDIA, "mention_user", "quote")

ITEMS: JsonSchema = {
    "type": "array",
    "minItems": 1,
    "description": "消息片段，按顺序组成一条消息；文件会在其余内容之后单独发送",
    "items": {
        "type": "object",
        "properties": {
            "type": {
                "type": "string",
                "enum": list(TYPES),
                "description": "片段类型：plain 文本，image 图片，record 语音，"
                "video 视频，file 文件，mention_user @某人，quote 引用某条消息",
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
}


def check_message_arguments(
    arguments: Mapping[str, object], context: ToolExecutionContext
) -> list[str]:
    """What is wrong with ``arguments``, but for what their schema says."""
    problems, chat, session = [], get_sender(context).chat, arguments.get("session")
    key = _key(session, chat) if isinstance(session, str) else ""
    if key and key not in context.other_chats:
        problems.append(_not_allowed(chat, context))
    items = arguments.get("messages")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(item, dict) or item.get("type") not in TYPES:
            continue
        problem = check_message_item(item)
        if not problem and item["type"] == "mention_user":
            mention = check_mention(_given(item, "mention_user_id"), context, is_here=not key)
            problem = mention and f".mention_user_id{mention}"
        if problem:
            problems.append(f"messages[{index}]{problem}")
    return problems


@tool(
    name="send_message",
    description="立即向当前会话发送一条消息，可以组合文本、@、引用、图片、语音、视频和文件。"
    "适合在较慢的操作之前先告知用户，或发送纯文本以外的内容；最终回答不需要用它发送。",
    lenient=True,
    needs_chat=True,
    traits=("speaks",),
    default_config=DefaultConfig(timeout_seconds=240),
    on_timeout=UNCONFIRMED,
    own_checks=check_message_arguments,
)
async def send_message(
    context: ToolExecutionContext,
    invocation: ToolInvocation,
    messages: Annotated[list[dict[str, Any]], WithJsonSchema(ITEMS)],
    session: Annotated[
        str,
        "目标会话 platform_id:message_type:session_id，默认为当前会话；"
        "只能是当前会话，或者主人在工具配置中允许的其他会话",
    ] = "",
) -> ToolExecutionResult:
    """Send to the run's own chat, or to one that the tool's row lists for the sender, and report
    the client's response to the model. What goes to another chat is on record in both.

    Each file is a message of its own, after all the rest. A quote with only files is left out,
    because a file cannot quote. What is longer than a message of the chat is sent in several.
    """
    parts = [parse_message_part(item) for item in messages]
    files = [[part] for part in parts if part.type == "file"]
    rest = [part for part in parts if part.type != "file"]
    sender, sent = await _sender(context, session), []
    for message in (
        files if files and all(part.type == "quote" for part in rest) else [rest, *files]
    ):
        text = _say(message).strip()
        delivery = await send_parts(sender, message, text, invocation.call_pk)
        sent.append((text, delivery))
    return _result(sent)


async def send_parts(
    sender: MessageSender, parts: Sequence[MessagePart], text: str, call_pk: int
) -> Delivery:
    """Send ``parts``, whose words are ``text``, in as many messages as the chat takes them in; the
    one outcome of all. Where one could not be sent, it says what became of the others."""
    messages = split_message(parts, sender.part_limit)
    answers = (
        [AnswerMessage(list(parts), text)]
        if len(messages) == 1
        else [AnswerMessage(one, _say(one).strip()) for one in messages]
    )
    async with aclosing(sender.send_each(answers, tool_call_pk=call_pk)) as deliveries:
        outcomes = [delivery async for delivery in deliveries]
    last, number = outcomes[-1], len(outcomes)
    if last.state != MessageState.FAILED:
        return next((one for one in outcomes if one.state == MessageState.UNKNOWN), last)
    if number == 1:
        return last
    return replace(last, error=describe_part(last.error, number, len(answers)))


def describe_part(error: str, number: int, count: int) -> str:
    """Says that of ``count`` messages the one at ``number``, from 1, could not be sent, and what
    became of the others."""
    before = "之前的已发送或可能已送达，请勿重发" if number > 1 else ""
    after = "之后的没有发送" if number < count else ""
    told = [f"第 {number} 条（共 {count} 条）发送失败: {error}", before, after]
    return "；".join(filter(None, told))


def _say(parts: Sequence[MessagePart]) -> str:
    return "".join(WORDS[part.type](part) for part in parts)


def _result(sent: list[tuple[str, Delivery]]) -> ToolExecutionResult:
    """The result for the model of the messages sent, each with its text. It says never to resend a
    message that may have arrived."""
    failed = [(text, delivery) for text, delivery in sent if delivery.state == MessageState.FAILED]
    if not failed:
        unsure = any(delivery.state == MessageState.UNKNOWN for _, delivery in sent)
        content = UNCONFIRMED if unsure else CONFIRMED
        return ToolExecutionResult("send_message", success=True, content=content)
    lines = []
    for text, delivery in failed:
        name = f" {text[:NAME_LENGTH]}" if len(sent) > 1 else ""
        lines.append(f"消息发送失败{name}: {delivery.error}")
    if len(failed) < len(sent):
        lines.append(REST_IS_SENT)
    return ToolExecutionResult("send_message", success=False, error_message="\n".join(lines))


def delivery_result(name: str, delivery: Delivery, confirmed: str) -> ToolExecutionResult:
    """The result of a tool whose message came to ``delivery``: never to send again what may be
    there."""
    if delivery.state == MessageState.FAILED:
        error = f"消息发送失败: {delivery.error}"
        return ToolExecutionResult(name, success=False, error_message=error)
    content = UNCONFIRMED if delivery.state == MessageState.UNKNOWN else confirmed
    return ToolExecutionResult(name, success=True, content=content)


def _key(session: str, chat: ChatAddress) -> str:
    """The chat that ``session`` names, as ``kind:peer``; "" for ``chat``, that of the run."""
    key = session.strip().removeprefix(f"{chat.platform}:")
    return "" if key == chat.key else key


def _not_allowed(chat: ChatAddress, context: ToolExecutionContext) -> str:
    if not context.other_chats:
        return f"session 只能是当前会话 {chat.address}，不允许发送到其他会话"
    others = "、".join(sorted(context.other_chats)[:OTHERS_NAMED])
    return f"session 只能是当前会话 {chat.address}，或者 {others}"


async def _sender(context: ToolExecutionContext, session: str) -> MessageSender:
    """What sends to ``session``, the run's own chat or another one. Raises :class:`ToolFailed`
    where nothing may be said there."""
    sender = get_sender(context)
    key = _key(session, sender.chat)
    if not key:
        return sender
    kind, _, peer = key.partition(":")
    chat = ChatAddress(sender.chat.account, cast("ChatKind", kind), peer, sender.chat.platform)
    found = await sender.journal.open_chat(chat)
    if found.silence:
        raise ToolFailed(f"会话 {key} 现在不能发言：{found.silence}")
    return sender.elsewhere(chat, found)


def check_mention(user_id: str, context: ToolExecutionContext, *, is_here: bool = True) -> str:
    """Why the sender of ``context`` cannot have ``user_id`` mentioned, as the end of a sentence; ""
    if he can. Only senders who may do so themselves can have everyone mentioned; in another chat
    than theirs (not ``is_here``) only owners may."""
    if user_id != EVERYBODY:
        return "" if may_be_person(user_id, context.user_id) else " 只能是用户 ID"
    if context.is_owner or (is_here and is_chat_manager(context)):
        return ""
    return " 不能是 all：只有群主、群管理员或机器人的主人可以 @全体成员，请如实告诉用户，不要重试"


def check_message_item(item: dict[str, Any]) -> str:
    """What is wrong with one item, as the end of a sentence that begins with its place."""
    kind = item["type"]
    needed = {"plain": "text", "mention_user": "mention_user_id", "quote": "message_id"}.get(kind)
    if needed:
        given = _said(item) if needed == "text" else _given(item, needed)
        return "" if given.strip() else f".{needed} 不能为空"
    if url := _given(item, "url"):
        return "" if urlsplit(url).scheme in ("http", "https") else ".url 只能是 http 或 https 地址"
    if not (path := _given(item, "path")):
        return " 需要 path 或 url"
    # Only files of the media folder may leave the machine, whatever the model asks for.
    target = media_folder.locate_media_file(path)
    if target is None:
        return ".path 不在媒体文件夹内，不允许发送"
    size = media_folder.regular_file_size(target)
    if size is None:
        return ".path 指向的文件不存在，或者不是普通文件"
    return "" if size else ".path 指向的文件是空的，无法发送"


def _given(item: Mapping[str, object], key: str) -> str:
    return str(item.get(key) or "").strip()


def _said(item: Mapping[str, object]) -> str:
    """The words of an item, without what the model only thought."""
    return split_thoughts(str(item.get("text") or "")).text


def parse_message_part(item: Mapping[str, object]) -> MessagePart:
    path = _given(item, "path")
    return MessagePart(
        type=cast("PartType", item["type"]),
        text=_said(item),
        path=str(media_folder.locate_media_file(path)) if path and not _given(item, "url") else "",
        url=_given(item, "url"),
        mention_user_id=_given(item, "mention_user_id"),
        message_id=_given(item, "message_id"),
    )


#: The message as the record and later model calls read it.
WORDS: dict[str, Callable[[MessagePart], str]] = {
    "plain": lambda part: part.text,
    "mention_user": lambda part: f"[@{part.mention_user_id}]",
    "quote": lambda part: f"[回复:{part.message_id}]",
    "image": lambda _: "[图片]",
    "record": lambda _: "[语音]",
    "video": lambda _: "[视频]",
    "file": lambda part: f"[文件:{(part.url or part.path).rsplit('/', 1)[-1]}]",
}
