"""``fetch_history``: what was said in this chat before, answered or not, page by page."""

from collections.abc import Sequence
from typing import Any, cast

from django.utils import timezone

from agent.builtin_tools.entry import BuiltinTool
from agent.record.chat_record import MessagePage, PageRequest, RecordedMessage, load_message_pages
from agent.record.record import Record
from agent.run.flow import FENCED
from agent.run.message_sender import MessageSender
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.errors import ToolFailed
from tools.text.fences import FenceKind, clean_name, fence_values, json_line
from tools.text.storable import make_storable

NAME = "fetch_history"
NUMBER, HIGHEST_NUMBER = 10, 50
#: Characters of one message, and of all of a page, that are shown.
TEXT_LIMIT, PAGE_LIMIT = 1_000, 16_000

OLDER = "还有更早的消息，继续查看请用 before: {cursor}"
NO_OLDER = "没有更早的消息了。"
RECALLED = "[消息已撤回]"
NOTHING = "本会话中没有更早的消息。"
UNKNOWN = (
    "before 不是本会话中的消息：{before}。请使用本会话中消息的 message_id，或上一次结果给出的值。"
)


def build_history_tool(record: Record | None) -> BuiltinTool:
    """The tool over ``record``; without one it is never offered."""

    async def fetch_history(
        invocation: ToolInvocation, context: ToolExecutionContext
    ) -> ToolExecutionResult:
        if record is None:
            raise ToolFailed(NOTHING)
        chat = cast("MessageSender", context.metadata["speaker"]).chat
        before = make_storable(invocation.arguments.get("before") or "").strip()
        wish = PageRequest(chat, clamp_message_count(invocation.arguments.get("num")), before)
        page = await record.submit(load_message_pages, wish)
        if page is None:
            raise ToolFailed(UNKNOWN.format(before=clean_name(before)))
        return _result(page)

    return BuiltinTool(
        name=NAME,
        description="查看本会话中更早的消息，包括群里没有发给你、因此不在上下文里的消息。可以一页一页往前翻。",
        parameters={
            "type": "object",
            "properties": {
                "num": {
                    "type": "integer",
                    "description": f"要几条，1 到 {HIGHEST_NUMBER}，默认 {NUMBER}",
                },
                "before": {
                    "type": "string",
                    "maxLength": 128,
                    "description": "只看这条消息之前的：消息的 message_id，或上一次结果给出的值；默认为当前消息之前",
                },
            },
        },
        handler=fetch_history,
        needs_chat=True,
        is_on=lambda: record is not None,
    )


def clamp_message_count(value: int | None) -> int:
    """How many messages ``value`` asks for: 10 for none, and never less than 1 or more than 50."""
    return NUMBER if value is None else min(max(value, 1), HIGHEST_NUMBER)


def describe_message(said: RecordedMessage) -> dict[str, Any]:
    """What is told of one message: who, when, its id, and the words."""
    sender: dict[str, str] = {"bot": "你自己"} if said.from_bot else {"user_id": said.sender_id}
    if not said.from_bot and (name := clean_name(said.sender_name)):
        sender["name"] = name
    line: dict[str, Any] = {
        "sender": sender,
        "time": timezone.localtime(said.at).strftime("%Y-%m-%d %H:%M"),
    }
    if said.message_id:
        line["message_id"] = said.message_id
    text = said.text if len(said.text) <= TEXT_LIMIT else f"{said.text[:TEXT_LIMIT]}…"
    return line | {"text": RECALLED if said.is_recalled else text}


def fit_messages_on_page(messages: Sequence[RecordedMessage]) -> list[RecordedMessage]:
    """The newest of ``messages`` that fit on one page, in their order; the newest one always
    does."""
    kept, room = list[RecordedMessage](), PAGE_LIMIT
    for said in reversed(messages):
        room -= len(json_line(describe_message(said))) + 1
        if kept and room < 0:
            break
        kept.append(said)
    return kept[::-1]


def _result(page: MessagePage) -> ToolExecutionResult:
    if not page.messages:
        return ToolExecutionResult(NAME, success=True, content=NOTHING, structured_content=[])
    messages = fit_messages_on_page(page.messages)
    has_older = page.has_older or len(messages) < len(page.messages)
    told = [describe_message(said) for said in messages]
    end = OLDER.format(cursor=f"#{messages[0].pk}") if has_older else NO_OLDER
    content = f"{fence_values(FenceKind.HISTORY, told)}\n{end}"
    return ToolExecutionResult(
        NAME, success=True, content=content, structured_content=told, metadata={FENCED: True}
    )
