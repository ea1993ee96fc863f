"""``reply``: a visible reply to a chosen message, in parts, written by the model itself or by its replyer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.agents.agent import Agent
from agent.agents.runner import AgentRunner
from agent.builtin_tools.entry import BuiltinTool
from agent.builtin_tools.send_message import item_fault, part_of
from agent.models import Message
from agent.record import Record
from agent.speaker import Speaker
from agent.store.targets import Target, find_targets
from agent.types import Part
from tools.contract import JsonSchema, ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.errors import InvalidArguments, ToolFailed

NAME = "reply"
STYLES = ("简短表达", "正常回复", "长回复")
#: Messages that one reply is split into, at most.
PART_LIMIT = 5

PARAMETERS: JsonSchema = {
    "type": "object",
    "properties": {
        "msg_id": {"type": "string", "description": "要回复的消息的 message_id"},
        "text": {"type": "string", "description": "回复的原文；留空时按 reply_reference 和 reply_style 代为撰写"},
        "reply_reference": {"type": "string", "description": "回复的要点，text 留空时必填"},
        "reply_style": {"type": "string", "enum": list(STYLES), "default": STYLES[1], "description": "代为撰写时的篇幅"},
        "set_quote": {"type": "boolean", "default": True, "description": "是否引用这条消息"},
        "attach_at": {"type": "array", "items": {"type": "string"}, "maxItems": 20, "description": "要 @ 的用户 ID"},
        "attach_pic": {
            "type": "array",
            "maxItems": 9,
            "items": {"type": "string"},
            "description": "要附带的图片：http(s) 地址，或媒体文件夹内的路径",
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


class Replying:
    """The handler of ``reply``. Without a ``replyer`` it sends only what is written in ``text``."""

    def __init__(self, record: Record | None, runner: AgentRunner, replyer: Agent | None) -> None:
        self._record = record
        self._runner = runner
        self._replyer = replyer

    async def __call__(self, invocation: ToolInvocation, context: ToolExecutionContext) -> ToolExecutionResult:
        """Reply, and tell the model what each part came to. Raises :class:`InvalidArguments` or :class:`ToolFailed`."""
        speaker: Speaker = context.metadata["speaker"]
        arguments = invocation.arguments
        pictures = _pictures(arguments.get("attach_pic", []))
        target = await self._target(speaker, arguments["msg_id"].strip())
        text = arguments.get("text", "").strip() or await self._written(target, invocation, context)
        quotes = arguments.get("set_quote", True)
        messages = _messages(arguments, text, pictures, quotes=quotes)
        sent = [await _say(speaker, parts, words, invocation.metadata["tool_call_pk"]) for parts, words in messages]
        return _result(arguments, target, text, sent, repeats=_counted(context, target) > 1)

    async def _target(self, speaker: Speaker, message_id: str) -> Target:
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

    async def _written(self, target: Target, invocation: ToolInvocation, context: ToolExecutionContext) -> str:
        """The reply as the replyer puts it."""
        reference = invocation.arguments.get("reply_reference", "").strip()
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


def _pictures(given: Sequence[str]) -> list[Part]:
    items = [{"type": "image", ("url" if "://" in one else "path"): one} for one in given]
    faults = [f"attach_pic[{place}]{fault}" for place, item in enumerate(items) if (fault := item_fault(item))]
    if faults:
        raise InvalidArguments(faults)
    return [part_of(item) for item in items]


def split(text: str) -> list[str]:
    """``text`` as one says it in a chat: a message for each paragraph, at most five, the last with all the rest. Pure."""
    paragraphs = [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]
    return (
        [*paragraphs[: PART_LIMIT - 1], "\n\n".join(paragraphs[PART_LIMIT - 1 :])] if len(paragraphs) > PART_LIMIT else paragraphs
    )


def _messages(arguments: dict[str, Any], text: str, pictures: list[Part], *, quotes: bool) -> list[tuple[list[Part], str]]:
    """The messages to send, each with its words for the record: quote and mentions in the first, pictures in the last."""
    words = split(text)
    messages: list[list[Part]] = [[Part("plain", text=one)] for one in words]
    mentions = [Part("mention_user", mention_user_id=user_id) for user_id in arguments.get("attach_at", []) if user_id.strip()]
    if mentions:
        messages[0] = [*mentions, replace(messages[0][0], text=f" {words[0]}")]
    if quotes:
        messages[0].insert(0, Part("quote", message_id=arguments["msg_id"].strip()))
    messages[-1] += pictures
    shown = ["".join(f"[@{part.mention_user_id}] " for part in mentions) + words[0], *words[1:]]
    shown[-1] += "[图片]" * len(pictures)
    return list(zip(messages, shown, strict=True))


async def _say(speaker: Speaker, parts: list[Part], words: str, tool_call_pk: int) -> _Sent:
    delivery = await speaker.say(parts, words, tool_call_pk=tool_call_pk)
    speaker.has_replied |= delivery.state != Message.State.FAILED
    return _Sent(words, delivery.state.value, delivery.message_id, delivery.error)


def _counted(context: ToolExecutionContext, target: Target) -> int:
    """How often this run has replied to ``target``, this time included."""
    replied: dict[int, int] = context.metadata["flow"].replies
    replied[target.pk] = replied.get(target.pk, 0) + 1
    return replied[target.pk]


def _result(arguments: dict[str, Any], target: Target, text: str, sent: list[_Sent], *, repeats: bool) -> ToolExecutionResult:
    structured = {
        "msg_id": arguments["msg_id"],
        "set_quote": arguments.get("set_quote", True),
        "effective_set_quote": arguments.get("set_quote", True) and sent[0].state != Message.State.FAILED,
        "reply_text": text,
        "reply_segments": [one.text for one in sent],
        "send_results": [{"state": one.state, "message_id": one.message_id, "error": one.error} for one in sent],
        "target_user_name": target.sender_name or target.sender_id,
    }
    if failed := [one for one in sent if one.state == Message.State.FAILED]:
        error = f"回复有 {len(failed)} 条（共 {len(sent)} 条）发送失败: {failed[0].error}"
        return ToolExecutionResult(NAME, success=False, error_message=error, structured_content=structured)
    content = f"已回复 {target.sender_name or target.sender_id}：{text}"
    if any(one.state == Message.State.UNKNOWN for one in sent):
        content += "\n部分消息可能已送达，请勿重发。"
    if repeats:
        content += "\n你已经回复过这条消息，请不要重复回复。"
    return ToolExecutionResult(NAME, success=True, content=content, structured_content=structured)


def tool(record: Record | None, runner: AgentRunner, replyer: Agent | None) -> BuiltinTool:
    """The tool, with its way to the record and the agent that writes for it."""
    return BuiltinTool(
        name=NAME,
        description="回复本会话中的某一条消息，可以引用、@ 和附带图片。回复成功后，本轮的最终回答不会再发送。",
        parameters=PARAMETERS,
        handler=Replying(record, runner, replyer),
        needs_chat=True,
        timeout_seconds=180,
        on_timeout="回复可能已送达，请勿重发",
    )
