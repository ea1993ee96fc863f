"""An answer in words and in what is to be drawn of it."""

import re
from itertools import groupby
from typing import Any, NamedTuple

from django.utils.translation import gettext_noop

from agent.markdown.parser import Node, parse_blocks
from agent.markdown.plain_text import render_blocks, table_rows, to_plain

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
