"""An answer in the pieces that are sent: as it is, as plain text, or with pictures."""

import asyncio
from typing import NamedTuple

from agent.domain.manners import MarkdownStyle
from agent.markdown.plain_text import to_plain

#: A longer text is read beside the event loop; in characters.
SHORT = 2_000


class AnswerPiece(NamedTuple):
    """A part of an answer: words, or a picture with the same words in ``text``, for the record and
    for clients that refuse it."""

    text: str
    picture_path: str = ""
    """The absolute path of a PNG that a message part of type ``image`` may name; "" for words."""


async def prepare_answer(text: str, style: MarkdownStyle) -> list[AnswerPiece]:
    """``text`` as it is to be sent, in order; at least one piece. Never raises for what the text
    is: what cannot be drawn is words.

    When cancelled, drawing stops.
    """
    if style == MarkdownStyle.AS_IS:
        return [AnswerPiece(text)]
    if len(text) > SHORT:
        return [AnswerPiece(await asyncio.to_thread(to_plain, text))]
    return [AnswerPiece(to_plain(text))]
