"""Reading: the beginning of the files of a message, as far as their content is words.

What is read is kept under the hash of the file and the number of characters, so that
a file that is quoted again and again is opened once.
"""

import asyncio
from collections.abc import Sequence

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.media_refs import MediaKind, MediaRef, MediaUnavailable
from agent.domain.types import IncomingMessage
from agent.media.description_cache import DescriptionCache
from agent.media.document_worker import DocumentExtractor
from agent.media.downloads import DownloadAllowance, MediaDownloader
from agent.media.file_store import StoredFile
from agent.media.media_store import DescriptionKey
from agent.media.pipeline import FetchedMedia, MediaText, note_missing_media
from agent.record.waiting.recovery import PendingMessage
from tools.text import fences
from tools.text.storable import make_storable

PROMPT_KIND = "file"
#: What ends an excerpt that is not the whole file.
CUT = "\n（文件较长，后面的没有读取）"

NOT_ALLOWED = gettext_noop(
    "The file was not read: the bot's settings do not allow it for this sender."
)
SOME_MISSING = gettext_noop(
    "Some files could not be had; their placeholders stay, and the page of the message says why."
)


class DocumentReader:
    """The reader of files."""

    kinds: frozenset[MediaKind] = frozenset({"file"})

    def __init__(self, answers: DescriptionCache, downloads: MediaDownloader) -> None:
        self._answers = answers
        self._downloads = downloads
        self._extraction = DocumentExtractor()

    def wants(self, pending: PendingMessage) -> bool:
        account = pending.account
        return account.includes(account.media.files, pending.message.sender_id)

    async def fetch(
        self, message: IncomingMessage, ref: MediaRef, allowance: DownloadAllowance
    ) -> StoredFile:
        """The file, whatever it is: that it is none that can be read is found out by reading."""
        return await self._downloads.get(message.chat, ref, allowance, lambda mime: True)

    async def read(self, pending: PendingMessage, found: Sequence[FetchedMedia]) -> MediaText:
        if not found:
            has_files = any(ref.kind in self.kinds for ref in pending.message.media)
            return MediaText(notes=(NOT_ALLOWED,) if has_files and not self.wants(pending) else ())
        notes = note_missing_media(SOME_MISSING, found)
        texts = await asyncio.gather(*(self._read(pending.pk, one, notes) for one in found))
        return MediaText("".join(texts), tuple(dict.fromkeys(notes)))

    async def _read(self, message_pk: int, found: FetchedMedia, notes: list[str]) -> str:
        """The words of one file, fenced, "" when there are none; ``notes`` get to know why."""
        document, characters = found.kept, settings.FILE_EXCERPT_CHARS
        if document is None:
            return ""

        async def ask() -> str:
            beginning = await self._extraction.beginning(document.path, characters)
            return str(make_storable(beginning.text + ("" if beginning.is_whole else CUT)))

        question = DescriptionKey(document.sha256, PROMPT_KIND, f"excerpt-{characters}")
        try:
            return fences.label_file(
                await self._answers.get(message_pk, question, ask), found.ref.name
            )
        except MediaUnavailable as error:
            notes.append(str(error))
            return ""
