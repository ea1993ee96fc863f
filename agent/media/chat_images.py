"""The pictures of one chat, found by their names: our own copy first, then what the client still
has."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext

from agent.domain.file_types import PICTURES
from agent.domain.types import ChatAddress, MediaRef, MediaUnavailable
from agent.media.downloads import DownloadAllowance, MediaDownloader
from agent.media.file_store import FileStore, StoredFile
from agent.media.forwards import ForwardReader
from agent.media.media_store import load_media
from agent.media.result_pictures import find_pictures, touch_copies
from agent.record.record import Record
from tools.contract import ToolFailed

OF_RESULT, OF_MESSAGE = "tool_result", "message"
_PATH = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})*")


@dataclass(frozen=True, slots=True)
class PictureName:
    """A name, taken apart. ``owner`` is the id of a call or of a message."""

    kind: str
    owner: str
    path: tuple[int, ...]
    number: int


def build_picture_name(message_id: str, path: Sequence[int], number: int) -> str:
    """The name of the picture at ``number``, from 1, in a message or in one that ``path`` leads to
    from there."""
    middle = [".".join(map(str, path))] if path else []
    return ":".join([OF_MESSAGE, message_id, *middle, str(number)])


def parse_picture_name(name: str) -> PictureName | None:
    """``name`` taken apart; None for what is no name."""
    kind, _, rest = name.strip().partition(":")
    owner, _, number = rest.rpartition(":")
    if (
        kind not in (OF_RESULT, OF_MESSAGE)
        or not owner
        or not re.fullmatch(r"[0-9]{1,6}", number)
        or int(number) < 1
    ):
        return None
    message_id, _, path = owner.rpartition(":")
    if kind == OF_MESSAGE and message_id and _PATH.fullmatch(path):
        return PictureName(kind, message_id, tuple(map(int, path.split("."))), int(number))
    return PictureName(kind, owner, (), int(number))


NO_RESULT = "本会话的工具结果中没有这张图片：{name}"
NO_PICTURES = "这条消息里没有图片"
TOO_FEW = "这条消息里只有 {count} 张图片，没有第 {number} 张"
GONE = "图片的副本已经被删除，无法再发送"
UNAVAILABLE = "图片已经无法取得：{reason}"
TOO_SLOW = "取得图片用了太长时间"


class ChatImages:
    """Finds pictures for tools. Without ``downloads`` only what was kept can be had.

    A chat's pictures are found through that chat alone: its messages, what is forwarded
    in them, and the results of its own runs.
    """

    def __init__(
        self,
        record: Record,
        files: FileStore,
        forwards: ForwardReader,
        downloads: MediaDownloader | None = None,
    ) -> None:
        self._record = record
        self._files = files
        self._forwards = forwards
        self._downloads = downloads

    async def find(self, chat: ChatAddress, name: PictureName) -> StoredFile:
        """Our copy of a picture of ``chat``, fetched now if need be. Raises
        :class:`tools.contract.ToolFailed`."""
        if name.kind == OF_RESULT:
            kept = await self._of_result(chat, name)
        else:
            kept = await self._of_message(chat, name)
        await self._record.submit(touch_copies, kept.sha256)
        return kept

    async def _of_result(self, chat: ChatAddress, name: PictureName) -> StoredFile:
        sha256 = await self._record.submit(find_pictures, chat, name.owner, name.number)
        if sha256 is None:
            raise ToolFailed(NO_RESULT.format(name=f"{name.kind}:{name.owner}:{name.number}"))
        kept = await asyncio.to_thread(self._files.find, sha256)
        if kept is None:
            raise ToolFailed(GONE)
        return kept

    async def _of_message(self, chat: ChatAddress, name: PictureName) -> StoredFile:
        copies = [] if name.path else await self._copies(chat, name.owner)
        if name.number <= len(copies) and (kept := copies[name.number - 1]):
            return kept
        opened = await self._forwards.open(chat, name.owner, name.path)
        refs = self._forwards.pictures(opened.message, "" if name.path else name.owner)
        if name.number > max(len(refs), len(copies)):
            raise ToolFailed(
                TOO_FEW.format(count=len(refs), number=name.number) if refs else NO_PICTURES
            )
        if name.number > len(refs):
            raise ToolFailed(GONE)
        return await self._fetched(chat, refs[name.number - 1])

    async def _copies(self, chat: ChatAddress, message_id: str) -> Sequence[StoredFile | None]:
        """Our copies of the pictures in a message on record, in their order; None for those that
        there are not."""
        found = await self._forwards.on_record(chat, message_id)
        if found is None:
            return []
        rows = await self._record.submit_batched(load_media, found.pk)
        hashes = [
            row.sha256 for row in rows if row.ref.kind == "image" and row.ref.origin == "message"
        ]
        return await asyncio.to_thread(
            lambda: [self._files.find(sha256) if sha256 else None for sha256 in hashes]
        )

    async def _fetched(self, chat: ChatAddress, ref: MediaRef) -> StoredFile:
        if self._downloads is None:
            raise ToolFailed(GONE)
        try:
            async with asyncio.timeout(settings.MEDIA_FETCH_SECONDS):
                return await self._downloads.get(
                    chat,
                    ref,
                    DownloadAllowance(settings.MEDIA_FETCH_MIB * 2**20),
                    PICTURES.__contains__,
                )
        except TimeoutError as error:
            raise ToolFailed(TOO_SLOW) from error
        except MediaUnavailable as error:
            raise ToolFailed(UNAVAILABLE.format(reason=gettext(str(error)))) from error
