"""The words of the messages that a message quotes and forwards, fenced as the model is shown them
after its own: from the record, or else from the client.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from agent.domain.types import ChatAddress, ForwardedMessage, MediaSource
from agent.record.chats.chat_record import FoundMessage, find_quoted
from agent.record.chats.quoted_words import blank_value
from agent.record.record import Record
from agent.record.waiting.recovery import PendingMessage
from tools.error_boundary import LogLimit, log_errors
from tools.text.fences import FenceKind, clean_name, fence_values

logger = logging.getLogger(__name__)
LogLimit(logger)

#: Time for a client to give quoted messages, and everything that is forwarded, in seconds.
QUOTE_SECONDS, FORWARD_SECONDS = 1.0, 5.0
#: Quotes of quotes, and forwards in forwards, that are followed.
LEVELS = 3
#: Characters of all quoted messages, and of all forwarded ones with their senders.
QUOTE_CHARS, FORWARD_CHARS = 3_000, 6_000
#: Forwarded messages that are shown, and forwards inside forwards that are opened.
NODES, OPENED = 100, 8
#: What stands around the words of a forwarded message, about.
FRAME_CHARS = 60

MORE = "另有 {count} 条消息没有显示"
NOT_QUOTED = "客户端没有给出被引用的消息"
NOT_GIVEN = "客户端没有给出转发的内容"
TOO_SLOW = "其余的消息没有及时取得"


@dataclass(slots=True)
class _Room:
    """What may still be shown for one message."""

    quote_chars: int = QUOTE_CHARS
    chars: int = FORWARD_CHARS
    nodes: int = NODES
    opened: int = OPENED
    seen: set[str] = field(default_factory=set)
    """Ids of quoted messages, so that circles end."""
    forwards_end: float = 0.0
    """Until when forwards are opened, by the clock of the event loop; 0 before the first."""

    def take_quote(self, text: str) -> str:
        shown = cut_text(text, self.quote_chars)
        self.quote_chars -= len(shown)
        return shown

    def take_node(self, text: str) -> str:
        shown = cut_text(text, self.chars)
        self.chars -= len(shown) + FRAME_CHARS
        self.nodes -= 1
        return shown

    @property
    def is_full(self) -> bool:
        return self.chars <= 0 or self.nodes <= 0


class HeardWords:
    """Reads what messages quote and forward; holds nothing that belongs to one of them."""

    def __init__(self, record: Record, source: MediaSource) -> None:
        self._record = record
        self._source = source

    async def find(self, pending: PendingMessage) -> str:
        """The fenced words; "" where there are none to be had. Never raises for what a client
        does."""
        message, room, fences = pending.message, _Room(), list[str]()
        if message.message_id:
            room.seen.add(message.message_id)
        quotes = _Quotes(self, pending, room)
        with log_errors(logger, "What message %s quotes could not be read", pending.pk):
            if message.quoted_id and (value := await quotes.find(message.quoted_id)):
                fences.append(fence_values(FenceKind.QUOTED, [value]))
        with log_errors(logger, "What message %s forwards could not be read", pending.pk):
            if values := await self.open_forwards(message.chat, message.segments, room):
                fences.append(fence_values(FenceKind.FORWARDED, values))
        return "\n".join(fences)

    async def find_recorded(self, session_pk: int, message_id: str) -> FoundMessage | None:
        return await self._record.submit(find_quoted, session_pk, message_id)

    async def ask_message(
        self, chat: ChatAddress, message_id: str, is_heard: bool
    ) -> ForwardedMessage | None:
        fetch = self._source.fetch_quoted_message if is_heard else self._source.fetch_message
        return await fetch(chat, message_id)

    def has_only_media(self, segments: Sequence[dict[str, object]]) -> bool:
        """Whether nothing was said but pictures, voice, videos and files."""
        media = self._source.parse_refs(segments)
        return bool(media) and len(media) == sum(
            one.get("type") not in ("at", "reply") for one in segments
        )

    async def open_forwards(
        self, chat: ChatAddress, segments: Sequence[dict[str, object]], room: _Room
    ) -> list[dict[str, object]]:
        """The messages forwarded in ``segments``, each with those inside; none without a
        forward."""
        if not self._source.has_forward(segments):
            return []
        values: list[dict[str, object]] = []
        room.forwards_end = room.forwards_end or asyncio.get_running_loop().time() + FORWARD_SECONDS
        try:
            async with asyncio.timeout_at(room.forwards_end):
                await self._open(chat, segments, 1, room, values)
        except TimeoutError:
            values.append({"note": TOO_SLOW})
        return values or [{"note": NOT_GIVEN}]

    async def _open(
        self,
        chat: ChatAddress,
        segments: Sequence[dict[str, object]],
        level: int,
        room: _Room,
        values: list[dict[str, object]],
    ) -> None:
        """Append one level of a forward to ``values``, depth first."""
        content = await self._source.fetch_forwarded_messages(chat, segments)
        shown = 0
        for one in content.messages:
            if room.is_full:
                break
            value = describe_sender(one.sender_id, one.sender_name, one.happened_at)
            value["text"] = room.take_node(one.text)
            values.append(value)
            shown += 1
            if self._source.has_forward(one.segments) and level < LEVELS and room.opened:
                room.opened -= 1
                value["forwarded"] = inner = list[dict[str, Any]]()
                await self._open(chat, one.segments, level + 1, room, inner)
                if not inner:
                    del value["forwarded"]
        if (left := content.total - shown) > 0:
            values.append({"note": MORE.format(count=left)})


class _Quotes:
    """The quotes of one message, level by level."""

    def __init__(self, words: HeardWords, pending: PendingMessage, room: _Room) -> None:
        self._words = words
        self._chat = pending.message.chat
        self._session_pk = pending.session_pk
        self._room = room
        self._seconds = QUOTE_SECONDS

    async def find(
        self, message_id: str, level: int = 1, *, is_heard: bool = True
    ) -> dict[str, object] | None:
        """The message as a value of its fence, with what it quotes itself; None where it was shown
        before, and where it is nothing but media, which are read with those of the message that
        quotes it. Where neither the record nor the client knows it, the value says so; None where
        another quote quotes it. ``is_heard``: somebody quoted it in this chat, rather than the bot,
        whose model may name any message."""
        if level > LEVELS or message_id in self._room.seen:
            return None
        self._room.seen.add(message_id)
        found = await self._words.find_recorded(self._session_pk, message_id)
        if found is not None:
            said, quoted_id, segments = found.said, found.quoted_id, found.segments
            value = self._value(
                message_id, said.sender_id, said.sender_name, said.at, from_bot=said.from_bot
            )
            if said.is_recalled:
                return blank_value(value)
            text = said.text
        else:
            asked = await self._ask(message_id, is_heard)
            if asked is None:
                return {"message_id": message_id, "note": NOT_QUOTED} if level == 1 else None
            value = self._value(message_id, asked.sender_id, asked.sender_name, asked.happened_at)
            text, quoted_id, segments = asked.text, asked.quoted_id, asked.segments
        value["text"] = self._room.take_quote(text)
        is_heard = found is not None and "from_bot" not in value
        inner = await self.find(quoted_id, level + 1, is_heard=is_heard) if quoted_id else None
        if inner:
            value["quotes"] = inner
        if inside := await self._words.open_forwards(self._chat, segments, self._room):
            value["forwarded"] = inside
        if level == 1 and not (inner or inside) and self._words.has_only_media(segments):
            return None
        return value

    async def _ask(self, message_id: str, is_heard: bool) -> ForwardedMessage | None:
        """The message, as the client gives it while there is time for quotes."""
        loop = asyncio.get_running_loop()
        began, asked = loop.time(), None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                asked = await self._words.ask_message(self._chat, message_id, is_heard)
        self._seconds = max(0.0, self._seconds - (loop.time() - began))
        return asked

    def _value(
        self,
        message_id: str,
        sender_id: str,
        name: str,
        at: datetime | None,
        *,
        from_bot: bool = False,
    ) -> dict[str, Any]:
        is_own = from_bot or sender_id == self._chat.account
        return {
            "message_id": message_id,
            **({"from_bot": True} | _time(at) if is_own else describe_sender(sender_id, name, at)),
        }


def describe_sender(sender_id: str, name: str, at: datetime | None) -> dict[str, Any]:
    """Who said a message, and when, as far as it is known."""
    sender = {"user_id": sender_id, "name": clean_name(name)}
    known = {key: value for key, value in sender.items() if value}
    return ({"sender": known} if known else {}) | _time(at)


def _time(at: datetime | None) -> dict[str, str]:
    return {"time": timezone.localtime(at).strftime("%Y-%m-%d %H:%M")} if at else {}


def cut_text(text: str, room: int) -> str:
    """``text``, cut to ``room`` characters and a sign that says so."""
    return text if len(text) <= room else f"{text[: max(0, room)]}…"
