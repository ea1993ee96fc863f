"""Reading: the beginning of the files of a message, as far as their content is words.

What is read is kept under the hash of the file and the number of characters, so that
a file that is quoted again and again is opened once.
"""

import asyncio
from collections.abc import Sequence

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.media.answers import Answers
from agent.media.downloads import Allowance, Downloads
from agent.media.extraction import Extraction
from agent.media.kept import Kept
from agent.media.notes import missing
from agent.media.permission import may_be_read
from agent.media.refs import MediaKind, MediaRef, Unavailable
from agent.media.senses import Found, Reading
from agent.store.media import Question
from agent.store.recovery import Left
from agent.types import IncomingMessage, Outbox
from tools import fences
from tools.text import storable

PROMPT_KIND = "file"
#: What ends an excerpt that is not the whole file.
CUT = "\n（文件较长，后面的没有读取）"

NOT_ALLOWED = gettext_noop("The file was not read: the bot's settings do not allow it for this sender.")
SOME_MISSING = gettext_noop("Some files could not be had; their placeholders stay, and the page of the message says why.")


class Documents:
    """The reader of files."""

    kinds: frozenset[MediaKind] = frozenset({"file"})

    def __init__(self, answers: Answers, downloads: Downloads, outbox: Outbox) -> None:
        self._answers = answers
        self._downloads = downloads
        self._outbox = outbox
        self._extraction = Extraction()

    def wants(self, message: IncomingMessage) -> bool:
        return may_be_read(self._outbox, message)

    async def fetch(self, message: IncomingMessage, ref: MediaRef, allowance: Allowance) -> Kept:
        """The file, whatever it is: that it is none that can be read is found out by reading."""
        return await self._downloads.get(message.chat, ref, allowance, lambda mime: True)

    async def read(self, left: Left, found: Sequence[Found]) -> Reading:
        if not found:
            return Reading(notes=self._why_not(left.message))
        notes = missing(SOME_MISSING, found)
        texts = await asyncio.gather(*(self._read(left.pk, one, notes) for one in found))
        return Reading("".join(texts), tuple(dict.fromkeys(notes)))

    async def _read(self, message_pk: int, found: Found, notes: list[str]) -> str:
        """The words of one file, fenced, "" when there are none; ``notes`` get to know why."""
        document, characters = found.kept, settings.FILE_EXCERPT_CHARS
        if document is None:
            return ""

        async def ask() -> str:
            beginning = await self._extraction.beginning(document.path, characters)
            return str(storable(beginning.text + ("" if beginning.is_whole else CUT)))

        question = Question(document.sha256, PROMPT_KIND, f"excerpt-{characters}")
        try:
            return fences.labelled_file(await self._answers.get(message_pk, question, ask), found.ref.name)
        except Unavailable as error:
            notes.append(str(error))
            return ""

    def _why_not(self, message: IncomingMessage) -> tuple[str, ...]:
        has_files = any(ref.kind in self.kinds for ref in message.media)
        return (NOT_ALLOWED,) if has_files and not self.wants(message) else ()
