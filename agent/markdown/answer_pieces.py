"""An answer in the pieces that are sent: as it is, as plain text, or with pictures."""

import asyncio
import base64
import json
import logging
import re
from asyncio.subprocess import Process
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.manners import MarkdownStyle
from agent.markdown import drawing_packages
from agent.markdown.parser import Node, parse_blocks
from agent.markdown.plain_text import render_blocks, table_rows, to_plain
from agent.media.file_store import FileStore
from tools.error_boundary import LogLimit
from tools.processes.child import read_output, start_program

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


#: What one answer may have drawn, and how large one of them may be; the rest is sent as text.
MOST_PICTURES = 8
MOST_CHARS, MOST_LINES, MOST_CELLS, MOST_COLUMNS = 6_000, 120, 400, 10
MOST_FORMULA_CHARS = 1_000
SIGNS = {"✅": "✓", "✔": "✓", "☑": "✓", "❌": "✗", "❎": "✗", "✖": "✗", "⭐": "★", "\ufe0f": ""}
"""Emoji that tables are full of, and the same in the fonts that there are."""
WITHOUT_GLYPH = re.compile(
    r"[^\n\t -~\u00a0-\u052f\u1e00-\u26ff\u2713\u2717\u2776-\u2793\u27e8\u27e9\u2e80-\u9fff"
    r"\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]|[\u200c-\u200f\u202a-\u202e\u2066-\u206f]"
)
"""Emoji, and scripts that are not in the fonts."""
LONG_WORD, BREAKABLE = re.compile(r"[!-~]{12}(?=[!-~]{4})"), "\\g<0>\u200b"
"""Addresses may be broken off within cells."""

MANY = gettext_noop("Not every table, formula and piece of code was drawn: there are too many.")
LARGE = gettext_noop("A table, a formula or code was not drawn: it is too large for a picture.")
NO_GLYPH = gettext_noop("A table, a formula or code was not drawn: no font has all its characters.")


class Part(NamedTuple):
    """A part of an answer: its words, and the job that draws it, if it is to be drawn."""

    text: str
    job: dict[str, object] | None = None
    remark: str = ""
    """Why it is not drawn although it is a table, code or a formula."""


def split_parts(text: str) -> list[Part]:
    """``text`` in parts; words between pictures are one. A text without pictures
    is one part."""
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = parse_blocks(normal)
    if blocks is None or all(_job_of(block) is None for block in blocks):
        return [Part(to_plain(text))]
    lines, parts, drawn = normal.split("\n"), list[Part](), 0
    for is_figure, group in groupby(blocks, lambda block: _job_of(block) is not None):
        several = list(group)
        if not is_figure:
            parts.append(Part(render_blocks(several, lines)))
            continue
        for block in several:
            job, words = _job_of(block), render_blocks([block], lines)
            remark = _refusal(job or {}, drawn)
            drawn += not remark
            parts.append(Part(words, None if remark else job, remark))
    return parts


def _job_of(block: Node) -> dict[str, object] | None:
    token = block.token
    match token.type:
        case "table_open":
            rows = table_rows(block)
            return {
                "rows": [[LONG_WORD.sub(BREAKABLE, _shown(one)) for one in row] for row in rows]
            }
        case "fence":
            language = token.info.split()[0] if token.info.split() else ""
            return {"code": _shown(token.content.removesuffix("\n")), "language": language[:20]}
        case "math_block":
            return {"formula": token.content[2:-2].strip()}
        case "paragraph_open":
            inner = block.children[0].token.children or []
            if (
                len(inner) == 1
                and inner[0].type == "math"
                and inner[0].content[:2] in ("$$", r"\[")
            ):
                return {"formula": inner[0].content[2:-2].strip()}
    return None


def _shown(text: str) -> str:
    for sign, other in SIGNS.items():
        text = text.replace(sign, other)
    return text


def _refusal(job: dict[str, Any], drawn: int) -> str:
    """Why ``job`` is not to be drawn, "" if it is."""
    cells = [cell for row in job.get("rows", ()) for cell in row]
    words = "\n".join((*cells, job.get("code", ""), job.get("formula", "")))
    most = MOST_FORMULA_CHARS if "formula" in job else MOST_CHARS
    if drawn >= MOST_PICTURES:
        return MANY
    if len(next(iter(job.get("rows", ())), ())) > MOST_COLUMNS:
        return LARGE
    if len(words) > most or words.count("\n") > MOST_LINES + len(cells) or len(cells) > MOST_CELLS:
        return LARGE
    return NO_GLYPH if WITHOUT_GLYPH.search(words) else ""


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
    if style == MarkdownStyle.PLAIN:
        plain = await asyncio.to_thread(to_plain, text) if len(text) > SHORT else to_plain(text)
        return [AnswerPiece(plain)]
    parts = await asyncio.to_thread(split_parts, text) if len(text) > SHORT else split_parts(text)
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
