"""``reply``: a visible reply to a chosen message, in parts, written by the model itself or by its
replyer."""

import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from agent.builtin_tools.attachments import AttachmentFinder, parse_picture_arguments
from agent.builtin_tools.send_message import check_mention, describe_part
from agent.domain.answer_parts import split_answer
from agent.domain.states import MessageState
from agent.domain.types import AnswerMessage, MessagePart
from agent.llm.answers.thoughts import split_thoughts
from agent.record.chats.chat_record import ReplyTarget, find_targets
from agent.record.record import Record
from agent.run.message_sender import MessageSender
from agent.run.services import get_sender, get_services
from agent.subagents.provider import speak_as
from agent.subagents.runner import SubagentRunner
from agent.subagents.subagent import Subagent
from tools.contract import (
    InvalidArguments,
    JsonSchema,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
)
from tools.functions.function_tool import FunctionTool
from tools.registry.catalogue import DefaultConfig
from tools.text.storable import make_storable

NAME = "reply"
#: Messages that one reply is split into, at most.
PART_LIMIT = 5
REQUEST = (
    "请以你的口吻回复下面这条消息，只输出回复的正文。\n"
    "篇幅：{style}\n要点：{points}\n消息：{message}"
)
MENTIONS: JsonSchema = {
    "type": "array",
    "items": {"type": "string"},
    "maxItems": 20,
    "description": "要 @ 的用户 ID（数字）",
}
PICTURES = (
    "要附带的图片：http(s) 地址、媒体文件夹内的路径，或会话中图片的名字"
    "（tool_result:<call_id>:<n>、message:<message_id>:<n>）"
)


@dataclass(frozen=True, slots=True)
class _SentPart:
    """One part of a reply and its outcome."""

    text: str
    state: str
    message_id: str
    error: str


class ReplyHandler:
    """Sends replies. Without a ``replyer`` it sends only what is written in ``text``."""

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

    async def reply(
        self,
        context: ToolExecutionContext,
        invocation: ToolInvocation,
        msg_id: Annotated[str, "要回复的消息的 message_id"],
        text: Annotated[str, "回复的原文；留空时按 reply_reference 和 reply_style 代为撰写"] = "",
        reply_reference: Annotated[str, "回复的要点，text 留空时必填"] = "",
        reply_style: Annotated[
            Literal["简短表达", "正常回复", "长回复"],
            "代为撰写时的篇幅",
            Field(json_schema_extra={"default": "正常回复"}),
        ] = "正常回复",
        set_quote: Annotated[
            bool, "是否引用这条消息", Field(json_schema_extra={"default": True})
        ] = True,
        attach_at: Annotated[list[str], WithJsonSchema(MENTIONS)] = [],  # noqa: B006 - pydantic copies it
        attach_pic: Annotated[list[str], PICTURES, Field(max_length=9)] = [],  # noqa: B006 - as above
        attach_emoji: Annotated[
            str, "要附带的表情：用几个词说明情绪、内容或场合", Field(max_length=200)
        ] = "",
    ) -> ToolExecutionResult:
        """Reply, and report the outcome of each part to the model. Raises :class:`InvalidArguments`
        or :class:`ToolFailed`."""
        sender, wanted = get_sender(context), parse_picture_arguments("attach_pic", attach_pic)
        people = _people(attach_at, context)
        target = await self._find_target(sender, _clean(msg_id))
        sticker = await self._attachments.sticker(_clean(attach_emoji))
        pictures = await self._attachments.pictures(sender.chat, wanted)
        words = split_thoughts(_clean(text)).text.strip()
        if not words:
            points = _clean(reply_reference)
            request = REQUEST.format(style=reply_style, points=points, message=target.text)
            words = await self._written(request if points else "", invocation, context)
        quoted = _clean(msg_id) if set_quote else ""
        messages = build_reply_messages(words, people, quoted, pictures, sender.part_limit)
        if sticker:
            messages.append(AnswerMessage([sticker.part], sticker.words))
        sent = await _send(sender, messages, invocation.call_pk)
        if sticker and len(sent) == len(messages) and sent[-1].state != MessageState.FAILED:
            await self._attachments.count(sticker)
        was_sent = sent[0].state != MessageState.FAILED
        replies = get_services(context).flow.replies
        before = replies.get(target.pk, 0)
        replies[target.pk] = before + was_sent
        facts = {
            "msg_id": msg_id,
            "set_quote": set_quote,
            "effective_set_quote": set_quote and was_sent,
            "reply_text": words,
        }
        return _result(facts, target, sent, len(messages), repeats=before > 0)

    async def _find_target(self, sender: MessageSender, message_id: str) -> ReplyTarget:
        if not message_id:
            raise InvalidArguments(["msg_id 不能为空"])
        if self._record is None:
            raise ToolFailed("这里没有会话记录，不能回复指定的消息")
        target = await self._record.submit(find_targets, sender.session_pk, message_id)
        if target is None:
            raise ToolFailed(f"本会话中没有 message_id 为 {message_id} 的消息")
        if target.is_recalled:
            raise ToolFailed(f"消息 {message_id} 已被撤回")
        return target

    async def _written(
        self, request: str, invocation: ToolInvocation, context: ToolExecutionContext
    ) -> str:
        """The reply as the replyer puts it."""
        if not request:
            raise InvalidArguments(["text 和 reply_reference 不能都为空"])
        if self._replyer is None:
            raise ToolFailed("没有可用的回复撰写模型，请直接在 text 中给出回复原文")
        replyer = speak_as(self._replyer, get_services(context).persona)
        text = await self._runner.ask(replyer, request, invocation, context)
        if not text:
            raise ToolFailed("代为撰写的回复是空的，请直接在 text 中给出回复原文")
        return text


def build_reply_tool(
    record: Record | None,
    runner: SubagentRunner,
    replyer: Subagent | None,
    attachments: AttachmentFinder,
) -> FunctionTool:
    """The tool, with its way to the record, the agent that writes for it, and its attachments."""
    return FunctionTool(
        ReplyHandler(record, runner, replyer, attachments).reply,
        name=NAME,
        description="回复本会话中指定的某一条消息，可以引用、@、附带图片和表情。"
        "普通的回答直接写出来即可，会自动发送，不需要用它；只在要回复另一条消息，"
        "或需要引用、@ 他人、附带图片时使用。回复成功后，本轮的最终回答不会再发送。",
        lenient=True,
        needs_chat=True,
        traits=("speaks",),
        default_config=DefaultConfig(timeout_seconds=180),
        on_timeout="回复可能已送达，请勿重发",
    )


def _clean(text: str) -> str:
    return str(make_storable(text)).strip()


def _people(attach_at: Sequence[str], context: ToolExecutionContext) -> list[str]:
    """The people whom the reply mentions. Raises :class:`InvalidArguments` if the sender may not
    mention one."""
    named = [user_id.strip() for user_id in attach_at]
    problems = [
        f"attach_at[{index}]{problem}"
        for index, user_id in enumerate(named)
        if user_id and (problem := check_mention(user_id, context))
    ]
    if problems:
        raise InvalidArguments(problems)
    return [user_id for user_id in named if user_id]


def split_reply(text: str) -> list[str]:
    """``text`` as one says it in a chat: a message for each paragraph, at most five, the last with
    all the rest. Pure."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    if len(paragraphs) <= PART_LIMIT:
        return paragraphs
    return [*paragraphs[: PART_LIMIT - 1], "\n\n".join(paragraphs[PART_LIMIT - 1 :])]


def build_reply_messages(
    text: str,
    people: Sequence[str],
    quoted_id: str,
    pictures: Sequence[MessagePart],
    limit: int,
) -> list[AnswerMessage]:
    """The messages to send, each of at most ``limit`` characters and with its words for the record.
    Quote and mentions are in the first, pictures in the last."""
    words = [
        part
        for paragraph in split_reply(text)
        for part in ([paragraph] if len(paragraph) <= limit else split_answer(paragraph, limit))
    ]
    messages = [[MessagePart("plain", text=part)] for part in words]
    if people:
        mentions = [MessagePart("mention_user", mention_user_id=user_id) for user_id in people]
        messages[0] = [*mentions, replace(messages[0][0], text=f" {words[0]}")]
        words[0] = "".join(f"[@{user_id}] " for user_id in people) + words[0]
    if quoted_id:
        messages[0].insert(0, MessagePart("quote", message_id=quoted_id))
    messages[-1] += pictures
    words[-1] += "[图片]" * len(pictures)
    return [AnswerMessage(*one) for one in zip(messages, words, strict=True)]


async def _send(
    sender: MessageSender, messages: Sequence[AnswerMessage], call_pk: int
) -> list[_SentPart]:
    """Send one after the other; after one that was surely not sent no other is."""
    sent: list[_SentPart] = []
    async with aclosing(sender.send_each(messages, tool_call_pk=call_pk)) as deliveries:
        async for delivery in deliveries:
            words = messages[len(sent)].text
            sent.append(_SentPart(words, delivery.state.value, delivery.message_id, delivery.error))
            sender.has_replied |= delivery.state != MessageState.FAILED
    return sent


def _result(
    facts: dict[str, object],
    target: ReplyTarget,
    sent: list[_SentPart],
    count: int,
    *,
    repeats: bool,
) -> ToolExecutionResult:
    """The result for the model of a reply of ``count`` messages; ``repeats``: the run had replied
    to ``target`` before."""
    name = target.sender_name or target.sender_id
    structured = facts | {
        "reply_segments": [part.text for part in sent],
        "send_results": [
            {"state": part.state, "message_id": part.message_id, "error": part.error}
            for part in sent
        ],
        "target_user_name": name,
    }
    if sent[-1].state == MessageState.FAILED:
        error = sent[-1].error
        error = (
            f"回复发送失败: {error}"
            if count == 1
            else f"回复的{describe_part(error, len(sent), count)}"
        )
        return ToolExecutionResult(
            NAME, success=False, error_message=error, structured_content=structured
        )
    content = f"已回复 {name}：{facts['reply_text']}"
    if any(part.state == MessageState.UNKNOWN for part in sent):
        content += "\n部分消息可能已送达，请勿重发。"
    if repeats:
        content += "\n你已经回复过这条消息，请不要重复回复。"
    return ToolExecutionResult(NAME, success=True, content=content, structured_content=structured)
