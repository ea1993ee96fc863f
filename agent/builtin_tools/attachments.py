"""The attachments of a reply: pictures by URL, path or name, and a sticker by its description."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent.builtin_tools.send_emoji import ChosenSticker, choose_sticker
from agent.builtin_tools.send_image import find_sendable_file
from agent.builtin_tools.send_message import check_message_item, parse_message_part
from agent.domain.types import ChatAddress, MessagePart
from agent.media.chat_images import ChatImages
from agent.media.file_store import FileStore
from agent.media.picture_names import PictureName, parse_picture_name
from agent.record.record import Record
from agent.stickers.choosing import StickerChooser
from agent.stickers.store import mark_stickers_sent
from tools.errors import InvalidArguments, ToolFailed


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
        parts = []
        for picture in wanted:
            if not isinstance(picture, PictureName):
                parts.append(parse_message_part(picture))
                continue
            if self._gallery is None:
                raise ToolFailed("这里没有会话中的图片")
            kept = await self._gallery.find(chat, picture)
            path = await asyncio.to_thread(find_sendable_file, self._files, kept)
            parts.append(MessagePart("image", path=str(path.resolve())))
        return parts

    async def sticker(self, words: str) -> ChosenSticker | None:
        """The sticker that fits ``words`` best; None for no words. Raises
        :class:`tools.errors.ToolFailed` where there is none."""
        if not words:
            return None
        if self._record is None:
            raise ToolFailed("这里没有表情库")
        return await choose_sticker(self._record, self._sight, words)

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
        parse_picture_name(text) or {"type": "image", ("url" if "://" in text else "path"): text}
        for text in given
    ]
    problems = [
        f"{name}[{place}]{problem}"
        for place, picture in enumerate(wanted)
        if isinstance(picture, dict) and (problem := check_message_item(picture))
    ]
    if problems:
        raise InvalidArguments(problems)
    return wanted
