"""``view_complex_message``: a forwarded message, opened one level at a time."""

from collections.abc import Sequence
from typing import Annotated, Any

from django.utils import timezone
from pydantic import Field

from agent.domain.types import ForwardedMessage
from agent.media.forwards import MAX_FORWARD_LEVELS, ForwardReader, OpenedMessage
from agent.media.picture_names import build_picture_name
from agent.run.flow import FENCED
from agent.run.services import get_sender
from tools.contract import ToolExecutionContext, ToolExecutionResult
from tools.errors import ToolFailed
from tools.functions.function_tool import FunctionTool, tool
from tools.text.fences import FenceKind, clean_name, fence_values, json_line
from tools.text.storable import make_storable

NAME = "view_complex_message"
#: Characters of a message among others, of one that is shown alone, and of everything in a result.
LISTED_LIMIT, TEXT_LIMIT, RESULT_LIMIT = 500, 8_000, 16_000
#: Pictures of one message that are named.
NAMED = 20

HOW_TO_OPEN = "标有 can_open 的可以继续展开：在 path 末尾加上它的 number。"
NOT_GIVEN = "客户端没有给出转发的内容，它可能已经过期。"
CUT = "后面还有 {count} 条没有列出，可以用 path 单独查看。"
NOTHING = "这条消息里没有可以显示的内容。"


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
        return _result(ForwardView(forwards, message_id, path), opened)

    return view_complex_message


class ForwardView:
    """One message as the tool shows it: its place, and the names of its contents."""

    def __init__(self, forwards: ForwardReader, message_id: str, path: Sequence[int]) -> None:
        self._forwards = forwards
        self._message_id = message_id
        self._path = tuple(path)

    def itself(self, message: ForwardedMessage) -> dict[str, Any]:
        return self._shown(message, self._path, TEXT_LIMIT)

    def child(self, number: int, message: ForwardedMessage) -> dict[str, Any]:
        line = {"number": number} | self._shown(message, (*self._path, number), LISTED_LIMIT)
        return line | ({"can_open": True} if self._forwards.is_forward(message.segments) else {})

    def _shown(self, message: ForwardedMessage, path: Sequence[int], limit: int) -> dict[str, Any]:
        sender = {"user_id": message.sender_id, "name": clean_name(message.sender_name)}
        line: dict[str, Any] = {"sender": {key: value for key, value in sender.items() if value}}
        if message.happened_at is not None:
            line["time"] = timezone.localtime(message.happened_at).strftime("%Y-%m-%d %H:%M")
        line["text"] = message.text if len(message.text) <= limit else f"{message.text[:limit]}…"
        count = len(self._forwards.pictures(message, "" if path else self._message_id))
        if count:
            line["pictures"] = [
                build_picture_name(self._message_id, path, place)
                for place in range(1, min(count, NAMED) + 1)
            ]
        return line


def _result(view: ForwardView, opened: OpenedMessage) -> ToolExecutionResult:
    if not opened.is_forward:
        lines = (
            [view.itself(opened.message)] if opened.message.text or opened.message.segments else []
        )
        return _told(lines, "" if lines else NOTHING)
    if not opened.children:
        return ToolExecutionResult(NAME, success=False, error_message=NOT_GIVEN)
    every = [view.child(number, message) for number, message in enumerate(opened.children, 1)]
    lines = fit_forward_lines(every)
    ends = [CUT.format(count=len(every) - len(lines))] if len(lines) < len(every) else []
    ends += [HOW_TO_OPEN] if any("can_open" in line for line in lines) else []
    return _told(lines, "\n".join(ends))


def fit_forward_lines(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first of ``lines`` that fit into one result."""
    kept, room = list[dict[str, Any]](), RESULT_LIMIT
    for line in lines:
        room -= len(json_line(line)) + 1
        if kept and room < 0:
            break
        kept.append(line)
    return kept


def _told(lines: Sequence[dict[str, Any]], end: str) -> ToolExecutionResult:
    content = "\n".join(
        [*([fence_values(FenceKind.MESSAGES, lines)] if lines else []), end]
    ).strip()
    return ToolExecutionResult(
        NAME, success=True, content=content, structured_content=list(lines), metadata={FENCED: True}
    )
