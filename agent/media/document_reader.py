"""Reading: the beginning of the files of a message, as far as their content is words.

What is read is kept under the hash of the file and the number of characters, so that
a file that is quoted again and again is opened once.
"""

import asyncio
import json
from asyncio.subprocess import Process
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.types import IncomingMessage, MediaKind, MediaRef, MediaUnavailable
from agent.media.downloads import DownloadAllowance, MediaDownloader
from agent.media.file_store import StoredFile
from agent.media.media_store import DescriptionCache, DescriptionKey
from agent.media.pipeline import FetchedMedia, MediaText, note_missing_media
from agent.record.waiting.recovery import PendingMessage
from tools.processes.child import read_output, start_program
from tools.text import fences
from tools.text.storable import make_storable

#: A document that takes longer is given up, and its process ended; in seconds.
READ_SECONDS = 20.0
#: The same with the wait for its turn.
PATIENCE_SECONDS = 60.0
#: Documents that are read at the same time; others wait.
AT_ONCE = 2
PROGRAM = ("-m", "agent.media.document_extractor")

BROKEN = gettext_noop("the file is damaged, or takes too much time or memory to read")
TOO_SLOW = gettext_noop("the file takes too long to read")
REASONS = {
    "kind": gettext_noop("this kind of file is not read"),
    "empty": gettext_noop("there is no text in the file"),
    "password": gettext_noop("the file is protected by a password"),
    "bomb": gettext_noop("the file unpacks to too much"),
}


@dataclass(frozen=True, slots=True)
class DocumentBeginning:
    """The first words of a document; ``is_whole`` when there are no more."""

    text: str
    is_whole: bool


class DocumentExtractor:
    """Reads documents with :mod:`agent.media.document_extractor`; the event loop only waits."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def beginning(self, document: Path, characters: int) -> DocumentBeginning:
        """At most ``characters`` of the words in ``document``.

        Raises :class:`MediaUnavailable` when there are none that can be had. After
        cancellation the reading is stopped.
        """
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), self._turns:
                answer = _parsed(
                    await read_output(await _start(document, characters), READ_SECONDS)
                )
        except TimeoutError as error:
            raise MediaUnavailable(TOO_SLOW) from error
        if answer is None:
            raise MediaUnavailable(BROKEN)
        if reason := REASONS.get(answer.get("reason", "")):
            raise MediaUnavailable(reason)
        return DocumentBeginning(answer["text"], answer["is_whole"])


async def _start(document: Path, characters: int) -> Process:
    file = await asyncio.to_thread(document.open, "rb")
    with file:
        return await start_program(*PROGRAM, str(characters), stdin=file)


def _parsed(output: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(output)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


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
