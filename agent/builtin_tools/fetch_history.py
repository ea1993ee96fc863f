"""``fetch_history``: what was said in this chat before, answered or not, page by page."""

from collections.abc import Sequence
from typing import Annotated, Any

from django.utils import timezone
from pydantic import Field

from agent.record.chats.chat_record import (
    MessagePage,
    PageRequest,
    RecordedMessage,
    load_message_pages,
)
from agent.record.record import Record
from agent.run.flow import FENCED
from agent.run.services import get_sender
from tools.contract import ToolExecutionContext, ToolExecutionResult
from tools.errors import ToolFailed
from tools.functions.function_tool import FunctionTool, tool
from tools.text.fences import FenceKind, clean_name, fence_values, json_line
from tools.text.storable import make_storable

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


def build_history_tool(record: Record | None) -> FunctionTool:
    """The tool over ``record``; without one it is never offered."""

    @tool(
        name="fetch_history",
        description="查看本会话中更早的消息，包括群里没有发给你、因此不在上下文里的消息。"
        "可以一页一页往前翻。",
        lenient=True,
        needs_chat=True,
        is_on=lambda: record is not None,
    )
    async def fetch_history(
        context: ToolExecutionContext,
        num: Annotated[int, f"要几条，1 到 {HIGHEST_NUMBER}，默认 {NUMBER}"] = NUMBER,
        before: Annotated[
            str,
            "只看这条消息之前的：消息的 message_id，或上一次结果给出的值；默认为当前消息之前",
            Field(max_length=128),
        ] = "",
    ) -> ToolExecutionResult:
        if record is None:
            raise ToolFailed(NOTHING)
        before = make_storable(before).strip()
        number = min(max(num, 1), HIGHEST_NUMBER)
        page = await record.submit(
            load_message_pages, PageRequest(get_sender(context).chat, number, before)
        )
        if page is None:
            raise ToolFailed(UNKNOWN.format(before=clean_name(before)))
        return _result(page)

    return fetch_history


def describe_message(message: RecordedMessage) -> dict[str, Any]:
    """One message as the model sees it: sender, time, id and text."""
    sender: dict[str, str] = (
        {"bot": "你自己"} if message.from_bot else {"user_id": message.sender_id}
    )
    if not message.from_bot and (name := clean_name(message.sender_name)):
        sender["name"] = name
    line: dict[str, Any] = {
        "sender": sender,
        "time": timezone.localtime(message.at).strftime("%Y-%m-%d %H:%M"),
    }
    if message.message_id:
        line["message_id"] = message.message_id
    text = message.text if len(message.text) <= TEXT_LIMIT else f"{message.text[:TEXT_LIMIT]}…"
    return line | {"text": RECALLED if message.is_recalled else text}


def fit_messages_on_page(messages: Sequence[RecordedMessage]) -> list[RecordedMessage]:
    """The newest of ``messages`` that fit on one page, in their order; the newest one always
    does."""
    kept, room = list[RecordedMessage](), PAGE_LIMIT
    for message in reversed(messages):
        room -= len(json_line(describe_message(message))) + 1
        if kept and room < 0:
            break
        kept.append(message)
    return kept[::-1]


def _result(page: MessagePage) -> ToolExecutionResult:
    if not page.messages:
        return ToolExecutionResult(
            "fetch_history", success=True, content=NOTHING, structured_content=[]
        )
    messages = fit_messages_on_page(page.messages)
    has_older = page.has_older or len(messages) < len(page.messages)
    described = [describe_message(message) for message in messages]
    end = OLDER.format(cursor=f"#{messages[0].pk}") if has_older else NO_OLDER
    content = f"{fence_values(FenceKind.HISTORY, described)}\n{end}"
    return ToolExecutionResult(
        "fetch_history",
        success=True,
        content=content,
        structured_content=described,
        metadata={FENCED: True},
    )
