"""The tools that look into the chat of a run, and send pictures to it, with all they need."""

from agent.builtin_tools import fetch_history, send_emoji, send_image, view_complex_message
from agent.builtin_tools.attachments import AttachmentFinder
from agent.builtin_tools.send_emoji import StickerAvailability
from agent.domain.types import MediaSource
from agent.media.chat_images import ChatImages
from agent.media.downloads import MediaDownloader
from agent.media.file_store import FileStore
from agent.media.forwards import ForwardReader
from agent.media.result_pictures import ResultPictureHook
from agent.record.record import Record
from agent.stickers.choosing import StickerChooser
from tools.fetch.fetcher import Fetcher
from tools.functions.function_tool import FunctionTool
from tools.registry.registry import ToolRegistry


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
        self._stickers = StickerAvailability(record)
        self._keeper = ResultPictureHook(record, files) if record else None
        forwards = ForwardReader(record, source) if record else None
        downloads = MediaDownloader(fetcher, files, source) if source else None
        gallery = ChatImages(record, files, forwards, downloads) if record and forwards else None
        self.attachments = AttachmentFinder(record, gallery, files, sight)
        self.tools: list[FunctionTool] = [
            send_emoji.build_sticker_tool(record, self._stickers, sight),
            send_image.build_image_tool(gallery, files),
            view_complex_message.build_forward_tool(forwards),
            fetch_history.build_history_tool(record),
        ]

    def attach(self, registry: ToolRegistry) -> None:
        """Have the pictures of all tools' results kept, for ``send_image``."""
        if self._keeper is not None:
            registry.add_hooks(after=self._keeper.keep)

    def reload_stickers(self) -> None:
        """Count the stickers again, without a look at their folder. Runs in the database thread."""
        self._stickers.reload()

    async def close(self) -> None:
        """End what was opened; the tools are not called any more."""
        await self._stickers.close()
        await self._fetcher.close()
