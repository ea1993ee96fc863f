"""Markdown as models write it in chats, parsed: CommonMark with tables and strikethrough, and with
what people type that only looks like Markdown left alone.

Beside the tokens of markdown-it there are two: ``math`` within a line, and ``math_block``; both
have the delimiters in their ``content``. An escape or an entity is a ``text_special``.
"""

import re
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock, blockquote
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token

#: A formula within a line, or a CQ look-alike, is no longer than that; in characters.
LONGEST_SPAN = 2_000
#: A formula of its own has no more lines than that.
LONGEST_FORMULA = 50
#: Blocks within blocks that are parsed; markdown-it drops what is deeper.
DEEPEST = 60
#: Opening brackets in a text that is parsed; each takes a search for its end.
MOST_BRACKETS = 5_000
QUOTE = re.compile(r">[> ]* |>+$")
ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,20}:|//|/|\.{1,2}/|#|www\.|[\w-]+\.[a-z]{2,})", re.IGNORECASE
)
REST_OF_ADDRESS = re.compile(r"://[^\s<>\[\]|`\"“”，。；、！？）)]+")
SCHEMES = ("http", "https", "ftp")
CLOSERS = {"$$": "$$", r"\[": r"\]", r"\(": r"\)", "$": "$", "[CQ:": "]"}
"""How spans end that are taken as they are; the longer of two that begin alike first."""
OUT_OF_USE = (
    # Link definitions and underlined headings look like a chat's record and like a rule; the
    # rest would change characters.
    *("reference", "lheading", "html_block", "linkify", "replacements", "smartquotes"),
    "text_join",
)


class Node(NamedTuple):
    """A block, with the blocks in it."""

    token: Token
    children: "list[Node]"


def parse_blocks(text: str) -> list[Node] | None:
    """The blocks of ``text``, whose lines end in a newline alone; None when they are nested too
    deep, or there is too much to search for."""
    if text.count("[") > MOST_BRACKETS:
        return None
    root: list[Node] = []
    here = [root]
    for token in _parser().parse(text):
        if token.level >= DEEPEST:
            return None
        if token.nesting < 0:
            here.pop()
            continue
        node = Node(token, [])
        here[-1].append(node)
        if token.nesting > 0:
            here.append(node.children)
    return root


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": True, "maxNesting": DEEPEST + 2})
    parser.disable(OUT_OF_USE)
    alternatives: RuleOptionsType = {"alt": ["paragraph", "blockquote", "list"]}
    parser.block.ruler.at("blockquote", _quote, alternatives)
    parser.block.ruler.before("fence", "math_block", _math_block, alternatives)
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.before("escape", "span", _span)
    parser.inline.ruler.before("escape", "address", _address)
    # A word in brackets before one in parentheses is a link only where the second is an address.
    parser.validateLink = lambda url: bool(ADDRESS.match(url))  # type: ignore[method-assign]
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.normalizeLinkText = lambda link: link  # type: ignore[method-assign]
    return parser


def _quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A quote, but not ``>_<``."""
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    return bool(QUOTE.match(line)) and blockquote(state, start, end, silent)


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A formula that begins with ``$$`` or ``\\[`` at the beginning of a line, and ends at the end
    of one: its other lines are not looked at, which may begin like a list."""
    opening = state.src[state.bMarks[start] + state.tShift[start] :][:2]
    if opening not in ("$$", r"\["):
        return False
    for line in range(start, min(end, start + LONGEST_FORMULA)):
        written = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()
        if not written or (line > start and state.sCount[line] < state.blkIndent):
            return False
        if (written[2:] if line == start else written).endswith(CLOSERS[opening]):
            break
    else:
        return False
    if not silent:
        token = state.push("math_block", "math", 0)
        token.map = [start, line + 1]
        token.content = state.getLines(start, line + 1, state.blkIndent, False).strip()
        state.line = line + 1
    return True


def _span(state: StateInline, silent: bool) -> bool:
    """A formula or a CQ look-alike, in which nothing is Markdown."""
    src, start = state.src, state.pos
    opening = next((one for one in CLOSERS if src.startswith(one, start)), "")
    if not opening:
        return False
    closer = CLOSERS[opening]
    at = src.find(closer, start + len(opening), start + LONGEST_SPAN)
    inner = src[start + len(opening) : at]
    if at < 0 or not inner.strip():
        return False
    end = at + len(closer)
    # As pandoc tells a formula from sums of money.
    if opening == "$" and (inner != inner.strip() or "\n" in inner or src[end : end + 1].isdigit()):
        return False
    if not silent:
        token = state.push("text" if opening == "[CQ:" else "math", "", 0)
        token.content = src[start:end]
    state.pos = end
    return True


def _address(state: StateInline, silent: bool) -> bool:
    """An address among the words; in it there is no Markdown."""
    if silent or not state.src.endswith(SCHEMES, 0, state.pos):
        return False
    found = REST_OF_ADDRESS.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    taken = found[0].rstrip("*_~")
    state.append_pending(taken)
    state.pos += len(taken)
    return True


def _emphasis(state: StateInline, silent: bool) -> bool:
    """The marks of emphasis, as markdown-it takes them, and beside Chinese as well: by CommonMark
    ``**注意：**它`` ends nowhere, because a mark after punctuation needs a space.

    https://github.com/tats-u/markdown-cjk-friendly says the same at more length.
    """
    src, start = state.src, state.pos
    marker = src[start]
    if silent or marker not in "*_":
        return False
    opens, closes, length = state.scanDelims(start, marker == "*")
    before, after = (
        src[start - 1 : start] if start else "",
        src[start + length : start + length + 1],
    )
    if marker == "*" and (is_wide(before) or is_wide(after)):
        opens, closes = bool(after.strip()), bool(before.strip())
    for _ in range(length):
        state.push("text", "", 0).content = marker
        index = len(state.tokens) - 1
        state.delimiters.append(Delimiter(ord(marker), length, index, -1, opens, closes))
    state.pos += length
    return True


def is_wide(character: str) -> bool:
    """Whether it is a character of Chinese, Japanese or Korean, punctuation included."""
    return character in "“”‘’—…·" if character < "\u2e80" else character < "\U000e0000"
