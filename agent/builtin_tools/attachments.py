"""The attachments of a reply: pictures by URL, path or name, and a sticker by its description."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from django.conf import settings
from pydantic import Field

from agent.builtin_tools.send_message import check_message_item, delivery_result, parse_message_part
from agent.domain.file_types import HEAD, sniff_mime_type
from agent.domain.types import ChatAddress, MessagePart
from agent.media import media_folder
from agent.media.chat_images import OF_MESSAGE, ChatImages, PictureName, parse_picture_name
from agent.media.file_store import FileStore, StoredFile
from agent.record.record import Record
from agent.run.services import get_sender
from agent.stickers import store
from agent.stickers.choosing import StickerChooser, rank_stickers
from agent.stickers.store import TYPES, StickerCandidate, mark_stickers_sent
from tools.contract import (
    InvalidArguments,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolFailed,
    ToolInvocation,
)
from tools.error_boundary import log_errors
from tools.functions.function_tool import FunctionTool, tool
from tools.registry.catalogue import DefaultConfig
from tools.text.fences import clean_name
from tools.text.storable import make_storable

logger = logging.getLogger(__name__)

#: How often the folder is scanned while tools are listed, in seconds.
LOOK_SECONDS = 30.0
#: Descriptions that the model gets when nothing fits, and characters of each.
EXAMPLES, EXAMPLE_LENGTH = 20, 30

NO_STICKERS = "表情库里没有可以发送的表情"
NO_FILES = "符合的表情文件都不在磁盘上了，没有发送"
NOTHING_FITS = "没有符合“{wish}”的表情。可以试试这些：{examples}"


@dataclass(frozen=True, slots=True)
class ChosenSticker:
    """A sticker that was chosen: its row, and its picture."""

    sticker: StickerCandidate
    part: MessagePart

    @property
    def words(self) -> str:
        """The message as the record reads it."""
        return f"[表情：{self.sticker.words}]" if self.sticker.words else "[表情]"


class StickerAvailability:
    """Whether there are stickers, as this process knows it. Used from one event loop, but for
    :meth:`recount`."""

    def __init__(self, record: Record | None) -> None:
        self._record = record
        self._count = 0
        self._looked: float | None = None
        self._look: asyncio.Task[None] | None = None

    def has_any(self) -> bool:
        """Whether any sticker may be sent, as of the last scan; no I/O. Starts a scan of the folder
        from time to time."""
        now = time.monotonic()
        if self._record is not None and (
            self._looked is None or now - self._looked >= LOOK_SECONDS
        ):
            self._looked = now
            self._look = asyncio.get_running_loop().create_task(
                self._look_at_folder(self._record), name="stickers"
            )
        return self._count > 0

    def recount(self, count: int) -> None:
        """There are so many as of the rows. Runs in the database thread, when some were changed."""
        self._count = count

    async def close(self) -> None:
        """End the look that is under way."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])

    async def _look_at_folder(self, record: Record) -> None:
        """Ask the disk in a thread of its own: nobody who waits for the record waits for it."""
        with log_errors(logger, "The stickers' folder could not be looked at"):
            known = await record.submit(store.load_known_stickers)
            seen = await asyncio.to_thread(store.look_at_folder, known)
            self._count = await record.submit(store.take_in_stickers, seen)


def build_sticker_tool(
    record: Record | None, box: StickerAvailability, sight: StickerChooser | None = None
) -> FunctionTool:
    """The tool over the collection of ``box``; without a ``record`` it is never offered.

    ``sight`` chooses among what the words leave, where the operator wants that.
    """

    @tool(
        name="send_emoji",
        description="从表情库中挑选一张表情图片，立即发送到当前会话。"
        "用几个词说明想要的表情，例如“开心”“无语 猫”。",
        lenient=True,
        needs_chat=True,
        traits=("speaks",),
        is_on=box.has_any,
        default_config=DefaultConfig(timeout_seconds=240),
        on_timeout="表情可能已送达，请勿重发",
    )
    async def send_emoji(
        context: ToolExecutionContext,
        invocation: ToolInvocation,
        words: Annotated[str, "想要的表情：情绪、内容或场合", Field(min_length=1, max_length=200)],
    ) -> ToolExecutionResult:
        wish = words.strip()
        if not wish:
            raise InvalidArguments(["words 不能为空"])
        if record is None:
            raise ToolFailed(NO_STICKERS)
        chosen = await choose_sticker(record, sight, wish)
        delivery = await get_sender(context).send(
            [chosen.part], chosen.words, tool_call_pk=invocation.call_pk
        )
        result = delivery_result("send_emoji", delivery, f"已发送{chosen.words}")
        if result.success:
            await record.submit(store.mark_stickers_sent, chosen.sticker.pk)
        return result

    return send_emoji


async def choose_sticker(record: Record, sight: StickerChooser | None, wish: str) -> ChosenSticker:
    """The sticker that fits best among those whose file is there. Raises :class:`ToolFailed`."""
    every = await record.submit(store.list_sticker_candidates)
    if not every:
        raise ToolFailed(NO_STICKERS)
    fitting = await asyncio.to_thread(rank_stickers, wish, every)
    if sight is not None and settings.STICKERS_BY_VISION:
        known = {one.pk for one in fitting}
        seen = await sight.best(wish, [*fitting, *(one for one in every if one.pk not in known)])
        fitting = [seen, *(one for one in fitting if one != seen)] if seen else fitting
    if not fitting:
        texts = (f"{one.words} {one.tags}".strip()[:EXAMPLE_LENGTH] for one in every)
        examples = "、".join(list(dict.fromkeys(filter(None, texts)))[:EXAMPLES])
        raise ToolFailed(NOTHING_FITS.format(wish=wish, examples=examples or "（都还没有说明）"))
    for one in fitting:
        if path := store.locate_sticker(one.path):
            size = await asyncio.to_thread(media_folder.regular_file_size, path)
            if size:
                return ChosenSticker(one, MessagePart("image", path=str(path)))
        logger.warning("The sticker %s is not on disk", one.path)
        await record.submit(store.mark_stickers_missing, one.pk)
    raise ToolFailed(NO_FILES)


ONE_OF_BOTH = "msg_id 和 media_index 必须给出一个，并且只能给出一个"
NO_NAME = (
    "media_index 不对：{name}。应为工具结果中的 tool_result:<call_id>:<序号>，"
    "或消息中的 message:<message_id>:<序号>"
)
NOT_SENDABLE = "这张图片的格式不能发送：{mime}"
SENT = "图片已发送"


def build_image_tool(gallery: ChatImages | None, files: FileStore) -> FunctionTool:
    """The tool over ``gallery``; without one it is never offered."""

    @tool(
        name="send_image",
        description="把一张图片再次发送到当前会话：本会话某条消息中的图片，或先前工具结果中的图片。"
        "msg_id 和 media_index 只能给出一个。",
        lenient=True,
        needs_chat=True,
        traits=("speaks",),
        is_on=lambda: gallery is not None,
        default_config=DefaultConfig(timeout_seconds=240),
        on_timeout="图片可能已送达，请勿重发",
    )
    async def send_image(
        context: ToolExecutionContext,
        invocation: ToolInvocation,
        msg_id: Annotated[
            str, "本会话中含有图片的消息的 message_id，发送其中第一张", Field(max_length=128)
        ] = "",
        media_index: Annotated[
            str,
            "图片的名字：某次工具调用的结果中第 n 项是 tool_result:<该次调用的 id>:<n>，"
            "某条消息中第 n 张是 message:<message_id>:<n>",
            Field(max_length=400),
        ] = "",
    ) -> ToolExecutionResult:
        name, sender = parse_picture_choice(msg_id, media_index), get_sender(context)
        if gallery is None:
            raise ToolFailed(ONE_OF_BOTH)
        kept = await gallery.find(sender.chat, name)
        path = await asyncio.to_thread(find_sendable_file, files, kept)
        part = MessagePart("image", path=str(path.resolve()))
        delivery = await sender.send([part], "[图片]", tool_call_pk=invocation.call_pk)
        return delivery_result("send_image", delivery, SENT)

    return send_image


def parse_picture_choice(msg_id: str, media_index: str) -> PictureName:
    """The picture that a call means. Raises :class:`InvalidArguments` for what cannot be meant."""
    msg_id, index = make_storable(msg_id).strip(), make_storable(media_index).strip()
    if bool(msg_id) == bool(index):
        raise InvalidArguments([ONE_OF_BOTH])
    name = PictureName(OF_MESSAGE, msg_id, (), 1) if msg_id else parse_picture_name(index)
    if name is None:
        raise InvalidArguments([NO_NAME.format(name=clean_name(index))])
    return name


def find_sendable_file(files: FileStore, kept: StoredFile) -> Path:
    """The copy, or the picture made from it for models if clients do not accept its format."""
    if kept.mime in TYPES:
        return kept.path
    shown = files.shown_path(kept.sha256)
    try:
        with shown.open("rb") as file:
            is_fit = sniff_mime_type(file.read(HEAD)) in TYPES
    except OSError:
        is_fit = False
    if not is_fit:
        raise ToolFailed(NOT_SENDABLE.format(mime=kept.mime or "unknown"))
    return shown


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
        :class:`tools.contract.ToolFailed` for one that there is not."""
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
        :class:`tools.contract.ToolFailed` where there is none."""
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
        f"{name}[{index}]{problem}"
        for index, picture in enumerate(wanted)
        if isinstance(picture, dict) and (problem := check_message_item(picture))
    ]
    if problems:
        raise InvalidArguments(problems)
    return wanted
