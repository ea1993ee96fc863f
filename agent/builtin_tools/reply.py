"""``reply``: a visible reply to a chosen message, in parts, written by the model itself or by its
replyer."""

import re
from dataclasses import dataclass, replace
from typing import Any

from agent.builtin_tools.attachments import AttachmentFinder, ChosenSticker, parse_picture_arguments
from agent.builtin_tools.entry import BuiltinTool
from agent.builtin_tools.mentions import check_mention
from agent.domain.states import MessageState
from agent.domain.types import MessagePart
from agent.record.record import Record
from agent.record.targets import ReplyTarget, find_targets
from agent.run.message_sender import MessageSender
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import JsonSchema, ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.errors import InvalidArguments, ToolFailed
from tools.text.storable import make_storable

NAME = "reply"
STYLES = ("简短表达", "正常回复", "长回复")
#: Messages that one reply is split into, at most.
PART_LIMIT = 5

PARAMETERS: JsonSchema = {
    "type": "object",
    "properties": {
        "msg_id": {"type": "string", "description": "要回复的消息的 message_id"},
        "text": {
            "type": "string",
            "description": "回复的原文；留空时按 reply_reference 和 reply_style 代为撰写",
        },
        "reply_reference": {"type": "string", "description": "回复的要点，text 留空时必填"},
        "reply_style": {
            "type": "string",
            "enum": list(STYLES),
            "default": STYLES[1],
            "description": "代为撰写时的篇幅",
        },
        "set_quote": {"type": "boolean", "default": True, "description": "是否引用这条消息"},
        "attach_at": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 20,
            "description": "要 @ 的用户 ID（数字）",
        },
        "attach_pic": {
            "type": "array",
            "maxItems": 9,
            "items": {"type": "string"},
            "description": "要附带的图片：http(s) 地址、媒体文件夹内的路径，或会话中图片的名字"
            "（tool_result:<call_id>:<n>、message:<message_id>:<n>）",
        },
        "attach_emoji": {
            "type": "string",
            "maxLength": 200,
            "description": "要附带的表情：用几个词说明情绪、内容或场合",
        },
    },
    "required": ["msg_id"],
}


@dataclass(frozen=True, slots=True)
class _Sent:
    """One part of a reply and what became of it."""

    text: str
    state: str
    message_id: str
    error: str


class ReplyHandler:
    """The handler of ``reply``. Without a ``replyer`` it sends only what is written in ``text``."""

    def __init__(
        self,
        record: Record | None,
        runner: SubagentRunner,
        replyer: Subagent | None,
        attachments: AttachmentFinder,
    ) -> None:
        self._record = record
        self._runner = runner
        self._replyer = replyer
        self._attachments = attachments

    async def __call__(
        self, invocation: ToolInvocation, context: ToolExecutionContext
    ) -> ToolExecutionResult:
        """Reply, and tell the model what each part came to. Raises :class:`InvalidArguments` or
        :class:`ToolFailed`."""
        speaker: MessageSender = context.metadata["speaker"]
        arguments = invocation.arguments
        wanted = parse_picture_arguments("attach_pic", arguments.get("attach_pic") or [])
        people = _people(arguments, context)
        target = await self._target(speaker, _given(arguments, "msg_id"))
        sticker = await self._attachments.sticker(_given(arguments, "attach_emoji"))
        pictures = await self._attachments.pictures(speaker.chat, wanted)
        text = _given(arguments, "text") or await self._written(target, invocation, context)
        messages = _messages(arguments, people, text, pictures, sticker)
        sent = await _said(speaker, messages, invocation.metadata["tool_call_pk"])
        if sticker and len(sent) == len(messages) and sent[-1].state != MessageState.FAILED:
            await self._attachments.count(sticker)
        return _result(
            arguments, target, text, sent, len(messages), _repeats(context, target, sent)
        )

    async def _target(self, speaker: MessageSender, message_id: str) -> ReplyTarget:
        if not message_id:
            raise InvalidArguments(["msg_id 不能为空"])
        if self._record is None:
            raise ToolFailed("这里没有会话记录，不能回复指定的消息")
        target = await self._record.submit(find_targets, (speaker.session_pk, message_id))
        if target is None:
            raise ToolFailed(f"本会话中没有 message_id 为 {message_id} 的消息")
        if target.is_recalled:
            raise ToolFailed(f"消息 {message_id} 已被撤回")
        return target

    async def _written(
        self, target: ReplyTarget, invocation: ToolInvocation, context: ToolExecutionContext
    ) -> str:
        """The reply as the replyer puts it."""
        reference = _given(invocation.arguments, "reply_reference")
        if not reference:
            raise InvalidArguments(["text 和 reply_reference 不能都为空"])
        if self._replyer is None:
            raise ToolFailed("没有可用的回复撰写模型，请直接在 text 中给出回复原文")
        style = invocation.arguments.get("reply_style", STYLES[1])
        request = f"请以你的口吻回复下面这条消息，只输出回复的正文。\n篇幅：{style}\n要点：{reference}\n消息：{target.text}"
        text = await self._runner.ask(self._replyer, request, invocation, context)
        if not text:
            raise ToolFailed("代为撰写的回复是空的，请直接在 text 中给出回复原文")
        return text


def _given(arguments: dict[str, Any], name: str) -> str:
    return str(make_storable(arguments.get(name) or "")).strip()


def _people(arguments: dict[str, Any], context: ToolExecutionContext) -> list[str]:
    """Whom the reply is to mention. Raises :class:`InvalidArguments` for whom the sender may
    not."""
    named = [user_id.strip() for user_id in arguments.get("attach_at") or []]
    found = [
        (place, check_mention(user_id, context)) for place, user_id in enumerate(named) if user_id
    ]
    if faults := [f"attach_at[{place}]{fault}" for place, fault in found if fault]:
        raise InvalidArguments(faults)
    return [user_id for user_id in named if user_id]


def split_reply(text: str) -> list[str]:
    """``text`` as one says it in a chat: a message for each paragraph, at most five, the last with
    all the rest. Pure."""
    paragraphs = [
        paragraph.strip() for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()
    ]
    return (
        [*paragraphs[: PART_LIMIT - 1], "\n\n".join(paragraphs[PART_LIMIT - 1 :])]
        if len(paragraphs) > PART_LIMIT
        else paragraphs
    )


def _messages(
    arguments: dict[str, Any],
    people: list[str],
    text: str,
    pictures: list[MessagePart],
    sticker: ChosenSticker | None,
) -> list[tuple[list[MessagePart], str]]:
    """The messages to send, each with its words for the record.

    Quote and mentions are in the first, pictures in the last; a sticker follows in a message of its
    own.
    """
    words = split_reply(text)
    messages: list[list[MessagePart]] = [[MessagePart("plain", text=one)] for one in words]
    mentions = [MessagePart("mention_user", mention_user_id=user_id) for user_id in people]
    if mentions:
        messages[0] = [*mentions, replace(messages[0][0], text=f" {words[0]}")]
    if arguments.get("set_quote", True):
        messages[0].insert(0, MessagePart("quote", message_id=_given(arguments, "msg_id")))
    messages[-1] += pictures
    shown = ["".join(f"[@{part.mention_user_id}] " for part in mentions) + words[0], *words[1:]]
    shown[-1] += "[图片]" * len(pictures)
    alone = [([sticker.part], sticker.words)] if sticker else []
    return [*zip(messages, shown, strict=True), *alone]


async def _said(
    speaker: MessageSender, messages: list[tuple[list[MessagePart], str]], tool_call_pk: int
) -> list[_Sent]:
    """Say one after the other; after one that was surely not sent no other is."""
    sent: list[_Sent] = []
    for parts, words in messages:
        delivery = await speaker.send(parts, words, tool_call_pk=tool_call_pk)
        sent.append(_Sent(words, delivery.state.value, delivery.message_id, delivery.error))
        if delivery.state == MessageState.FAILED:
            break
        speaker.has_replied = True
    return sent


def _repeats(context: ToolExecutionContext, target: ReplyTarget, sent: list[_Sent]) -> bool:
    """Whether this run had replied to ``target`` before; a reply of which nothing was sent is
    none."""
    replied: dict[int, int] = context.metadata["flow"].replies
    before = replied.get(target.pk, 0)
    replied[target.pk] = before + (sent[0].state != MessageState.FAILED)
    return before > 0


def _result(
    arguments: dict[str, Any],
    target: ReplyTarget,
    text: str,
    sent: list[_Sent],
    count: int,
    repeats: bool,
) -> ToolExecutionResult:
    """What the model is told of a reply of ``count`` messages."""
    quotes = arguments.get("set_quote", True)
    structured = {
        "msg_id": arguments["msg_id"],
        "set_quote": quotes,
        "effective_set_quote": quotes and sent[0].state != MessageState.FAILED,
        "reply_text": text,
        "reply_segments": [one.text for one in sent],
        "send_results": [
            {"state": one.state, "message_id": one.message_id, "error": one.error} for one in sent
        ],
        "target_user_name": target.sender_name or target.sender_id,
    }
    if sent[-1].state == MessageState.FAILED:
        error = _failure(sent[-1].error, len(sent), count)
        return ToolExecutionResult(
            NAME, success=False, error_message=error, structured_content=structured
        )
    content = f"已回复 {target.sender_name or target.sender_id}：{text}"
    if any(one.state == MessageState.UNKNOWN for one in sent):
        content += "\n部分消息可能已送达，请勿重发。"
    if repeats:
        content += "\n你已经回复过这条消息，请不要重复回复。"
    return ToolExecutionResult(NAME, success=True, content=content, structured_content=structured)


def _failure(error: str, place: int, count: int) -> str:
    """That the message at ``place``, from 1, could not be sent, and what became of the others."""
    if count == 1:
        return f"回复发送失败: {error}"
    before = "之前的已发送或可能已送达，请勿重发" if place > 1 else ""
    after = "之后的没有发送" if place < count else ""
    return "；".join(
        filter(None, [f"回复的第 {place} 条（共 {count} 条）发送失败: {error}", before, after])
    )


def build_reply_tool(
    record: Record | None,
    runner: SubagentRunner,
    replyer: Subagent | None,
    attachments: AttachmentFinder,
) -> BuiltinTool:
    """The tool, with its way to the record, the agent that writes for it, and what it can
    attach."""
    return BuiltinTool(
        name=NAME,
        description="回复本会话中指定的某一条消息，可以引用、@、附带图片和表情。普通的回答直接写出来即可，会自动发送，不需要用它；"
        "只在要回复另一条消息，或需要引用、@ 他人、附带图片时使用。回复成功后，本轮的最终回答不会再发送。",
        parameters=PARAMETERS,
        handler=ReplyHandler(record, runner, replyer, attachments),
        needs_chat=True,
        timeout_seconds=180,
        on_timeout="回复可能已送达，请勿重发",
    )
