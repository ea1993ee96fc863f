"""What a reply may carry beside words: pictures by address, path or name, and a sticker by
words."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent.builtin_tools.send_emoji import choose_sticker
from agent.builtin_tools.send_image import find_sendable_file
from agent.builtin_tools.send_message import check_message_item, parse_message_part
from agent.domain.types import ChatAddress, MessagePart
from agent.media.chat_images import ChatImages
from agent.media.file_store import FileStore
from agent.media.picture_names import PictureName, parse_picture_name
from agent.record.record import Record
from agent.stickers.choosing import StickerChooser
from agent.stickers.store import StickerCandidate, mark_stickers_sent
from tools.errors import InvalidArguments, ToolFailed


@dataclass(frozen=True, slots=True)
class ChosenSticker:
    """A sticker that was chosen: its row, and its picture."""

    sticker: StickerCandidate
    part: MessagePart

    @property
    def words(self) -> str:
        """The message as the record reads it."""
        return f"[表情：{self.sticker.words}]" if self.sticker.words else "[表情]"


class AttachmentFinder:
    """Finds what a call wants to attach. Without a ``gallery`` pictures have no names; without a
    ``record`` there are no stickers."""

    def __init__(
        self,
        record: Record | None,
        gallery: ChatImages | None,
        files: FileStore,
        sight: StickerChooser | None,
    ) -> None:
        self._record = record
        self._gallery = gallery
        self._files = files
        self._sight = sight

    async def pictures(
        self, chat: ChatAddress, wanted: Sequence["PictureName | dict[str, Any]"]
    ) -> list[MessagePart]:
        """The pictures that :func:`parse_picture_arguments` made out. Raises
        :class:`tools.errors.ToolFailed` for one that there is not."""
        return [
            await self._named(chat, one)
            if isinstance(one, PictureName)
            else parse_message_part(one)
            for one in wanted
        ]

    async def _named(self, chat: ChatAddress, name: PictureName) -> MessagePart:
        if self._gallery is None:
            raise ToolFailed("这里没有会话中的图片")
        kept = await self._gallery.find(chat, name)
        path = await asyncio.to_thread(find_sendable_file, self._files, kept)
        return MessagePart("image", path=str(path.resolve()))

    async def sticker(self, words: str) -> ChosenSticker | None:
        """The sticker that fits ``words`` best; None for no words. Raises
        :class:`tools.errors.ToolFailed` where there is none."""
        if not words:
            return None
        if self._record is None:
            raise ToolFailed("这里没有表情库")
        return ChosenSticker(*await choose_sticker(self._record, self._sight, words))

    async def count(self, sent: ChosenSticker) -> None:
        """Keep that a sticker was sent."""
        if self._record is not None:
            await self._record.submit(mark_stickers_sent, sent.sticker.pk)


def parse_picture_arguments(name: str, given: Sequence[str]) -> list[PictureName | dict[str, Any]]:
    """What the texts of the argument ``name`` mean: names of pictures, or items as ``send_message``
    takes them.

    Raises :class:`InvalidArguments` for addresses and paths that are not allowed.
    """
    wanted = [
        parse_picture_name(one) or {"type": "image", ("url" if "://" in one else "path"): one}
        for one in given
    ]
    faults = [
        f"{name}[{n}]{fault}"
        for n, one in enumerate(wanted)
        if isinstance(one, dict) and (fault := check_message_item(one))
    ]
    if faults:
        raise InvalidArguments(faults)
    return wanted
