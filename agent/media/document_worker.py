"""Having documents read: one process for each, that cannot harm the server whatever is in the
file."""

import asyncio
import json
from asyncio.subprocess import Process
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from agent.domain.media_refs import MediaUnavailable
from tools.processes.one_shot import read_output, start_program

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
