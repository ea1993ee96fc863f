"""An answer in the pieces that are sent: as it is, as plain text, or with pictures."""

import asyncio
import base64
import json
import logging
from asyncio.subprocess import Process
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.manners import MarkdownStyle
from agent.markdown import drawing_packages
from agent.media.file_store import FileStore
from tools.error_boundary import LogLimit
from tools.processes.child import read_output, start_program

if TYPE_CHECKING:
    from agent.markdown.parts import Part

logger = logging.getLogger(__name__)
LogLimit(logger)

#: What takes longer is given up, and sent as text; in seconds.
DRAW_SECONDS = 15.0
#: The same with the wait for its turn.
PATIENCE_SECONDS = 30.0
#: Answers that are drawn at the same time; others wait.
AT_ONCE = 2
PROGRAM = ("-m", "agent.markdown.drawing")


class PictureMaker:
    """Draws with :mod:`agent.markdown.drawing`; the event loop only waits."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def draw(self, jobs: Sequence[Mapping[str, object]]) -> list[bytes]:
        """A PNG for each of ``jobs``, b"" for one that could not be drawn. When cancelled, the
        process is gone."""
        nothing = [b""] * len(jobs)
        if not jobs:
            return nothing
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), self._turns:
                output = await read_output(await _start(), DRAW_SECONDS, json.dumps(jobs).encode())
            drawn = json.loads(output or b"[]")
        except (OSError, TimeoutError, ValueError) as error:
            logger.warning("Parts of an answer could not be drawn: %r", error)
            return nothing
        return [base64.b64decode(one) for one in drawn] if len(drawn) == len(jobs) else nothing


async def _start() -> Process:
    return await start_program(*PROGRAM)


#: A longer text is read beside the event loop; in characters.
SHORT = 2_000
NOT_DRAWN = gettext_noop("A table, a formula or code was not drawn: the program could not do it.")
NOT_INSTALLED = gettext_noop(
    "A table, a formula or code was not drawn: what draws is not installed. Run once: make drawing "
    "(or: python manage.py install_drawing)"
)

_maker = PictureMaker()
"""One for the process: it bounds how many are drawn at once."""


class AnswerPiece(NamedTuple):
    """A part of an answer: words, or a picture with the same words in ``text``, for the record and
    for clients that refuse it."""

    text: str
    picture_path: str = ""
    """The absolute path of a PNG that a message part of type ``image`` may name; "" for words."""
    remark: str = ""
    """For the run's notes: why it is words although it was to be a picture. In English, for
    gettext."""


async def prepare_answer(text: str, style: MarkdownStyle) -> list[AnswerPiece]:
    """``text`` as it is to be sent, in order; at least one piece. Never raises for what the text
    is: what cannot be drawn is words.

    When cancelled, drawing stops.
    """
    if style == MarkdownStyle.AS_IS:
        return [AnswerPiece(text)]
    is_quick = len(text) <= SHORT and _markdown.cache_info().currsize
    parts = _read(text, style) if is_quick else await asyncio.to_thread(_read, text, style)
    drawn, failure = await _drawn([part.job for part in parts if part.job])
    pieces = list[AnswerPiece]()
    for part in parts:
        path = await _kept(next(drawn)) if part.job else ""
        remark = failure if part.job and not path else part.remark
        if not path and pieces and not pieces[-1].picture_path:
            words = f"{pieces[-1].text}\n\n{part.text}"
            pieces[-1] = AnswerPiece(words, remark=remark or pieces[-1].remark)
        else:
            pieces.append(AnswerPiece(part.text, path, remark))
    return pieces or [AnswerPiece(text)]


def _read(text: str, style: MarkdownStyle) -> "list[Part]":
    """The parts of ``text``; without pictures one. The first text takes longer."""
    markdown = _markdown()
    if style == MarkdownStyle.PLAIN:
        return [markdown.Part(markdown.to_plain(text))]
    parts: list[Part] = markdown.split_parts(text)
    return parts


@cache
def _markdown() -> Any:
    """What reads Markdown: 70 modules, for servers that answer."""
    from agent.markdown import parts

    return parts


async def _drawn(jobs: Sequence[Mapping[str, object]]) -> tuple[Iterator[bytes], str]:
    """The picture of each of ``jobs``, and what is to be said of one that is b""."""
    if not jobs or drawing_packages.are_installed():
        return iter(await _maker.draw(jobs)), NOT_DRAWN
    logger.warning("%s %s", drawing_packages.MISSING, drawing_packages.ADVICE)
    return iter([b""] * len(jobs)), NOT_INSTALLED


async def _kept(picture: bytes) -> str:
    """The path of ``picture`` among our own copies, which age and are deleted as those of media;
    "" where there is none, or no room for it."""
    if not picture:
        return ""
    files = FileStore(Path(settings.RECEIVED_DIR), settings.MEDIA_FREE_BYTES)
    try:
        return str((await asyncio.to_thread(files.put, picture)).path.resolve())
    except OSError:
        return ""
