"""Messages of a chat, opened level by level: a message, what is forwarded in it, and so on."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agent.domain.types import ChatAddress, ForwardedMessage, MediaRef, MediaSource
from agent.record.chats.chat_record import FoundMessage, find_messages
from agent.record.record import Record
from tools.contract import ToolFailed

#: Levels below a message that can be opened.
MAX_FORWARD_LEVELS = 8
#: Time for a client to give everything on the way, in seconds.
OPEN_FORWARD_SECONDS = 40.0

UNKNOWN = "本会话中没有 message_id 为 {message_id} 的消息，或者客户端已经不记得它"
NO_CHILD = "path 第 {level} 层没有编号 {number}：这一层的编号为 1 到 {count}"
NOT_OPENABLE = "path 第 {level} 层不能再展开：上一层不是转发消息，或者客户端没有给出内容"
RECALLED = "消息 {message_id} 已被撤回"
TOO_SLOW = "客户端没有及时给出这条消息的内容"


@dataclass(frozen=True, slots=True)
class OpenedMessage:
    """One message on a path: what it says, and the messages that are forwarded in it."""

    message: ForwardedMessage
    children: list[ForwardedMessage]
    is_forward: bool
    """Whether others are forwarded in it, also where the client does not give them."""


class ForwardReader:
    """Opens messages of one chat for its tools. Without a ``source`` only what is on record can be
    seen."""

    def __init__(self, record: Record, source: MediaSource | None) -> None:
        self._record = record
        self._source = source

    async def open(self, chat: ChatAddress, message_id: str, path: Sequence[int]) -> OpenedMessage:
        """The message that ``path`` leads to, by numbers from 1, beginning at a message of
        ``chat``.

        Raises :class:`tools.contract.ToolFailed` with the reason.
        """
        try:
            async with asyncio.timeout(OPEN_FORWARD_SECONDS):
                message = await self._walked(chat, message_id, path)
                return OpenedMessage(
                    message,
                    await self._children(chat, message.segments),
                    self.is_forward(message.segments),
                )
        except TimeoutError as error:
            raise ToolFailed(TOO_SLOW) from error

    def is_forward(self, segments: Sequence[dict[str, object]]) -> bool:
        return self._source is not None and self._source.has_forward(segments)

    def pictures(self, message: ForwardedMessage, message_id: str = "") -> list[MediaRef]:
        """The pictures in a message; ``message_id`` is that of the chat's message it is itself, ""
        for a forwarded one."""
        if self._source is None:
            return []
        refs = self._source.parse_refs(
            message.segments, message_id, "message" if message_id else "forwarded"
        )
        return [ref for ref in refs if ref.kind == "image"]

    async def _walked(
        self, chat: ChatAddress, message_id: str, path: Sequence[int]
    ) -> ForwardedMessage:
        message = await self._top(chat, message_id)
        for level, number in enumerate(path, 1):
            children = await self._children(chat, message.segments)
            if not children:
                raise ToolFailed(NOT_OPENABLE.format(level=level))
            if not 1 <= number <= len(children):
                raise ToolFailed(NO_CHILD.format(level=level, number=number, count=len(children)))
            message = children[number - 1]
        return message

    async def on_record(self, chat: ChatAddress, message_id: str) -> FoundMessage | None:
        """The message as it is on record; None where it is not. Raises :class:`ToolFailed` for one
        that was taken back."""
        found = await self._record.submit(find_messages, chat, message_id)
        if found is not None and found.said.is_recalled:
            raise ToolFailed(RECALLED.format(message_id=message_id))
        return found

    async def _top(self, chat: ChatAddress, message_id: str) -> ForwardedMessage:
        found = await self.on_record(chat, message_id)
        if found is not None:
            said = found.said
            return ForwardedMessage(
                said.text, found.segments, said.sender_id, said.sender_name, said.at
            )
        asked = (
            await self._source.fetch_message(chat, message_id)
            if self._source and message_id
            else None
        )
        if asked is None:
            raise ToolFailed(UNKNOWN.format(message_id=message_id))
        return asked

    async def _children(
        self, chat: ChatAddress, segments: Sequence[dict[str, object]]
    ) -> list[ForwardedMessage]:
        if self._source is None or not self._source.has_forward(segments):
            return []
        return (await self._source.fetch_forwarded_messages(chat, segments)).messages
