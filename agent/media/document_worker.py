"""Having documents read: one process for each, that cannot harm the server whatever is in the
file."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from agent.domain.media_refs import MediaUnavailable

#: A document that takes longer is given up, and its process ended; in seconds.
READ_SECONDS = 20.0
#: The same with the wait for its turn.
PATIENCE_SECONDS = 60.0
#: Documents that are read at the same time; others wait.
AT_ONCE = 2
#: How long a killed process is waited for, in seconds.
GONE_SECONDS = 2.0
PROGRAM = ("-m", "agent.media.document_extractor")
ROOT = Path(__file__).resolve().parents[2]

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
                answer = _parsed(await _output(await _start(document, characters)))
        except TimeoutError as error:
            raise MediaUnavailable(TOO_SLOW) from error
        if answer is None:
            raise MediaUnavailable(BROKEN)
        if reason := REASONS.get(answer.get("reason", "")):
            raise MediaUnavailable(reason)
        return DocumentBeginning(answer["text"], answer["is_whole"])


async def _start(document: Path, characters: int) -> Process:
    # Without this process's environment, which holds the keys; in a group of its own,
    # and not in a session, as for the image worker.
    file = await asyncio.to_thread(document.open, "rb")
    with file:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, *PROGRAM, str(characters)),
            cwd=ROOT,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=file,
            stdout=PIPE,
            stderr=DEVNULL,
            process_group=0,
        )


async def _output(process: Process) -> bytes:
    """What ``process`` writes until it ends well; b"" when it does not. Raises TimeoutError. It is
    gone afterwards, also after cancellation."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            output, _ = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(GONE_SECONDS):
                await process.wait()
    return output if process.returncode == 0 else b""


def _parsed(output: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(output)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
