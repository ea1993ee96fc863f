"""``send_emoji``: a sticker of the operator's collection, chosen by words."""

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from agent.builtin_tools.send_message import delivery_result
from agent.domain.types import MessagePart
from agent.media import media_folder
from agent.record.record import Record
from agent.run.services import get_sender
from agent.stickers import store
from agent.stickers.choosing import StickerChooser, rank_stickers
from agent.stickers.store import StickerCandidate
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.error_boundary import log_errors
from tools.errors import InvalidArguments, ToolFailed
from tools.functions.function_tool import FunctionTool, tool
from tools.registry.catalogue import DefaultConfig

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
    :meth:`reload`."""

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

    def reload(self) -> None:
        """Count the rows again. Runs in the database thread, when the operator has changed some."""
        self._count = store.count_usable_stickers()

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
    if sight is not None:
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
