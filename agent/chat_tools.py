"""The tools that look into the chat of a run, and send pictures to it, with all they need."""

from agent.builtin_tools import fetch_history, send_emoji, send_image, view_complex_message
from agent.builtin_tools.attachments import Attachments
from agent.builtin_tools.entry import BuiltinTool
from agent.builtin_tools.send_emoji import StickerBox
from agent.forwards import Forwards
from agent.media.downloads import Downloads
from agent.media.gallery import Gallery
from agent.media.kept import KeptFiles
from agent.media.result_pictures import ResultPictures
from agent.record import Record
from agent.stickers import StickerSight
from agent.types import MediaSource
from tools.fetch.fetcher import Fetcher
from tools.registry import ToolRegistry


class ChatTools:
    """The entries, and what lives as long as they do.

    Without a ``record`` they are only declared. Without a ``source`` no client is asked,
    and only what was kept can be seen and sent.
    """

    def __init__(
        self,
        record: Record | None,
        files: KeptFiles,
        fetcher: Fetcher,
        source: MediaSource | None = None,
        sight: StickerSight | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._stickers = StickerBox(record)
        self._keeper = ResultPictures(record, files) if record else None
        forwards = Forwards(record, source) if record else None
        downloads = Downloads(fetcher, files, source) if source else None
        gallery = Gallery(record, files, forwards, downloads) if record and forwards else None
        self.attachments = Attachments(record, gallery, files, sight)
        self.entries: list[BuiltinTool] = [
            send_emoji.tool(record, self._stickers, sight),
            send_image.tool(gallery, files),
            view_complex_message.tool(forwards),
            fetch_history.tool(record),
        ]

    def attach(self, registry: ToolRegistry) -> None:
        """Have the pictures of all tools' results kept, for ``send_image``."""
        if self._keeper is not None:
            registry.add_hooks(after=self._keeper.keep)

    def reload(self) -> None:
        """Look at the stickers again. Runs in the database thread."""
        self._stickers.reload()

    async def close(self) -> None:
        """End what was opened; the tools are not called any more."""
        await self._fetcher.close()
