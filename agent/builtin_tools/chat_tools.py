"""The tools that look into the chat of a run, and send pictures to it, with all they need."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from django.utils import timezone
from pydantic import Field

from agent.builtin_tools import attachments
from agent.builtin_tools.attachments import AttachmentFinder, StickerAvailability
from agent.domain.types import ForwardedMessage, MediaSource
from agent.media.chat_images import ChatImages, build_picture_name
from agent.media.downloads import MediaDownloader
from agent.media.file_store import FileStore
from agent.media.forwards import MAX_FORWARD_LEVELS, ForwardReader, OpenedMessage
from agent.media.result_pictures import ResultPictureHook
from agent.record.chats.chat_record import (
    MessagePage,
    RecordedMessage,
    load_message_page,
)
from agent.record.record import Record
from agent.run.services import get_sender
from agent.run.tool_results import FENCED
from agent.stickers.choosing import StickerChooser
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolFailed
from tools.fetch.fetcher import Fetcher
from tools.functions.function_tool import FunctionTool, tool
from tools.registry.registry import ToolRegistry
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
        page = await record.submit(load_message_page, get_sender(context).chat, number, before)
        if page is None:
            raise ToolFailed(UNKNOWN.format(before=clean_name(before)))
        return _history_result(page)

    return fetch_history


def describe_message(message: RecordedMessage) -> dict[str, object]:
    """One message as the model sees it: sender, time, id and text."""
    sender: dict[str, str] = (
        {"bot": "你自己"} if message.from_bot else {"user_id": message.sender_id}
    )
    if not message.from_bot and (name := clean_name(message.sender_name)):
        sender["name"] = name
    line: dict[str, object] = {
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
    kept = fit_lines(map(describe_message, reversed(messages)), PAGE_LIMIT)
    return list(messages[len(messages) - len(kept) :])


def fit_lines(lines: Iterable[dict[str, object]], limit: int) -> list[dict[str, object]]:
    """The first of ``lines`` that have at most ``limit`` characters; the very first always does."""
    kept, room = list[dict[str, object]](), limit
    for line in lines:
        room -= len(json_line(line)) + 1
        if kept and room < 0:
            break
        kept.append(line)
    return kept


def _history_result(page: MessagePage) -> ToolExecutionResult:
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


NAME = "view_complex_message"
#: Characters of a message among others, of one that is shown alone, and of everything in a result.
LISTED_LIMIT, FORWARD_TEXT_LIMIT, RESULT_LIMIT = 500, 8_000, 16_000
#: Pictures of one message that are named.
NAMED = 20

HOW_TO_OPEN = "标有 can_open 的可以继续展开：在 path 末尾加上它的 number。"
NOT_GIVEN = "客户端没有给出转发的内容，它可能已经过期。"
CUT = "后面还有 {count} 条没有列出，可以用 path 单独查看。"
NOTHING_TO_SHOW = "这条消息里没有可以显示的内容。"


def build_forward_tool(forwards: ForwardReader | None) -> FunctionTool:
    """The tool over ``forwards``; without them it is never offered."""

    @tool(
        name=NAME,
        description="展开一条转发的聊天记录或嵌套消息，每次一层，列出其中每条消息的编号、发送者和内容。",
        lenient=True,
        needs_chat=True,
        is_on=lambda: forwards is not None,
    )
    async def view_complex_message(
        context: ToolExecutionContext,
        msg_id: Annotated[str, "本会话中消息的 message_id", Field(min_length=1, max_length=128)],
        path: Annotated[
            list[int],
            "展开到哪一层：逐层的编号（从 1 开始），例如 [2, 1]；默认展开消息本身",
            Field(max_length=MAX_FORWARD_LEVELS),
        ] = [],  # noqa: B006 - pydantic copies it
    ) -> ToolExecutionResult:
        if forwards is None:
            raise ToolFailed(NOT_GIVEN)
        message_id = make_storable(msg_id).strip()
        opened = await forwards.open(get_sender(context).chat, message_id, path)
        return _forward_result(ForwardView(forwards, message_id, path), opened)

    return view_complex_message


class ForwardView:
    """One message as the tool shows it: its place, and the names of its contents."""

    def __init__(self, forwards: ForwardReader, message_id: str, path: Sequence[int]) -> None:
        self._forwards = forwards
        self._message_id = message_id
        self._path = tuple(path)

    def itself(self, message: ForwardedMessage) -> dict[str, object]:
        return self._shown(message, self._path, FORWARD_TEXT_LIMIT)

    def child(self, number: int, message: ForwardedMessage) -> dict[str, object]:
        line = {"number": number} | self._shown(message, (*self._path, number), LISTED_LIMIT)
        return line | ({"can_open": True} if self._forwards.is_forward(message.segments) else {})

    def _shown(
        self, message: ForwardedMessage, path: Sequence[int], limit: int
    ) -> dict[str, object]:
        sender = {"user_id": message.sender_id, "name": clean_name(message.sender_name)}
        line: dict[str, object] = {"sender": {key: value for key, value in sender.items() if value}}
        if message.happened_at is not None:
            line["time"] = timezone.localtime(message.happened_at).strftime("%Y-%m-%d %H:%M")
        line["text"] = message.text if len(message.text) <= limit else f"{message.text[:limit]}…"
        count = len(self._forwards.pictures(message, "" if path else self._message_id))
        if count:
            line["pictures"] = [
                build_picture_name(self._message_id, path, picture)
                for picture in range(1, min(count, NAMED) + 1)
            ]
        return line


def _forward_result(view: ForwardView, opened: OpenedMessage) -> ToolExecutionResult:
    if not opened.is_forward:
        lines = (
            [view.itself(opened.message)] if opened.message.text or opened.message.segments else []
        )
        return _told(lines, "" if lines else NOTHING_TO_SHOW)
    if not opened.children:
        return ToolExecutionResult(NAME, success=False, error_message=NOT_GIVEN)
    every = [view.child(number, message) for number, message in enumerate(opened.children, 1)]
    lines = fit_lines(every, RESULT_LIMIT)
    ends = [CUT.format(count=len(every) - len(lines))] if len(lines) < len(every) else []
    ends += [HOW_TO_OPEN] if any("can_open" in line for line in lines) else []
    return _told(lines, "\n".join(ends))


def _told(lines: Sequence[Mapping[str, object]], end: str) -> ToolExecutionResult:
    content = "\n".join(
        [*([fence_values(FenceKind.MESSAGES, lines)] if lines else []), end]
    ).strip()
    return ToolExecutionResult(
        NAME, success=True, content=content, structured_content=list(lines), metadata={FENCED: True}
    )


class ChatTools:
    """The tools, and what lives as long as they do.

    Without a ``record`` they are only declared. Without a ``source`` no client is asked,
    and only what was kept can be seen and sent.
    """

    def __init__(
        self,
        record: Record | None,
        files: FileStore,
        fetcher: Fetcher,
        source: MediaSource | None = None,
        sight: StickerChooser | None = None,
    ) -> None:
        self._fetcher = fetcher
        self.stickers = StickerAvailability(record)
        self._keeper = ResultPictureHook(record, files) if record else None
        forwards = ForwardReader(record, source) if record else None
        downloads = MediaDownloader(fetcher, files, source) if source else None
        gallery = ChatImages(record, files, forwards, downloads) if record and forwards else None
        self.attachments = AttachmentFinder(record, gallery, files, sight)
        self.downloads = downloads
        self.tools: list[FunctionTool] = [
            attachments.build_sticker_tool(record, self.stickers, sight),
            attachments.build_image_tool(gallery, files),
            build_forward_tool(forwards),
            build_history_tool(record),
        ]

    def attach(self, registry: ToolRegistry) -> None:
        """Have the pictures of all tools' results kept, for ``send_image``."""
        if self._keeper is not None:
            registry.add_hooks(after=self._keeper.keep)

    async def close(self) -> None:
        """End what was opened; the tools are not called any more."""
        await self.stickers.close()
        await self._fetcher.close()
