"""An answer in the pieces that are sent: as it is, as plain text, or with pictures."""

import asyncio
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.manners import MarkdownStyle
from agent.markdown.blocks import split_parts
from agent.markdown.picture_maker import PictureMaker
from agent.markdown.plain_text import to_plain
from agent.media.file_store import FileStore

#: A longer text is read beside the event loop; in characters.
SHORT = 2_000
NOT_DRAWN = gettext_noop("A table, a formula or code was not drawn: the program could not do it.")

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
    if style == MarkdownStyle.PLAIN:
        plain = await asyncio.to_thread(to_plain, text) if len(text) > SHORT else to_plain(text)
        return [AnswerPiece(plain)]
    parts = await asyncio.to_thread(split_parts, text) if len(text) > SHORT else split_parts(text)
    drawn = iter(await _maker.draw([part.job for part in parts if part.job]))
    pieces = list[AnswerPiece]()
    for part in parts:
        path = await _kept(next(drawn)) if part.job else ""
        remark = NOT_DRAWN if part.job and not path else part.remark
        if not path and pieces and not pieces[-1].picture_path:
            words = f"{pieces[-1].text}\n\n{part.text}"
            pieces[-1] = AnswerPiece(words, remark=remark or pieces[-1].remark)
        else:
            pieces.append(AnswerPiece(part.text, path, remark))
    return pieces or [AnswerPiece(text)]


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
