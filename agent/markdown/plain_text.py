"""Markdown as plain text that reads well where nothing is rendered."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from markdown_it.token import Token

from agent.markdown.parser import Node, parse_blocks

RULE = "────────"
QUOTE_MARK, BULLET, INDENT = "▎", "•", "  "
TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
UNESCAPED = frozenset("*_`~#[]<>|$!")
"""What a backslash is taken away from: the rest stands in paths and patterns as often."""
FOLLOWING = re.compile(r"(?<=\n)(?=[^\n])")
TAG = re.compile(r"</?([a-z][a-z0-9]*)\b", re.IGNORECASE)
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
STYLES = frozenset(
    (
        *("b", "i", "em", "strong", "u", "s", "del", "ins", "mark", "small", "big", "sub", "sup"),
        *("kbd", "code", "font", "span", "p", "div", "center"),
    )
)
LISTS = ("bullet_list_open", "ordered_list_open")
PLAIN_BLOCKS = frozenset({*LISTS, "list_item_open", "paragraph_open", "inline", "code_block"})
PLAIN_INLINE = frozenset(("text", "softbreak", "hardbreak", "math"))
BEGINS_WORDS, ENDS_WORDS = "“‘「『《（(【[<\"'￥$#@+-", "”’」』》）)】]>\"'。！？；，、.!?;,:：%…~"


def to_plain(text: str) -> str:
    """``text`` without the marks of Markdown; every word of it, code and formulae as they are.

    A text without Markdown is returned unchanged, and so is one that is nested too deep or full of
    brackets.
    """
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = parse_blocks(normal)
    if blocks is None or all(map(_is_plain, blocks)):
        return text
    return render_blocks(blocks, normal.split("\n"))


def render_blocks(blocks: Sequence[Node], lines: Sequence[str]) -> str:
    """``blocks`` as plain text, with the blank lines between them that are in ``lines``, those of
    the text."""
    written: list[str] = []
    last = None
    for block in blocks:
        start, end = span_of(block, lines)
        if last is not None:
            written.append("\n" * max(1, start - last + 1))
        words = "\n".join(lines[start:end]) if _is_plain(block) and block.token.level == 0 else None
        written.append(_render(block, lines) if words is None else words)
        last = end
    return "".join(written)


def span_of(block: Node, lines: Sequence[str]) -> tuple[int, int]:
    """The first of its lines, and the one after its last that is not blank."""
    start, end = block.token.map or (0, 0)
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return start, end


def _is_plain(block: Node) -> bool:
    """Whether it reads as it is written."""
    token = block.token
    if token.type == "inline":
        return (
            not token.content.startswith(tuple(TASKS))
            and "\\\n" not in token.content
            and all(child.type in PLAIN_INLINE for child in token.children or ())
        )
    return (
        token.type in PLAIN_BLOCKS and token.markup != "*" and all(map(_is_plain, block.children))
    ) or token.type == "math_block"


def _render(block: Node, lines: Sequence[str]) -> str:
    kind = block.token.type
    if kind == "inline":
        return render_inline(block.token.children or [])
    if kind == "paragraph_open":
        first = lines[span_of(block, lines)[0]].lstrip(" ")
        indent = first[: len(first) - len(first.lstrip("\u3000"))]
        return indent + render_blocks(block.children, lines)
    if kind in LISTS:
        return _render_list(block, lines)
    if kind == "blockquote_open":
        inner = render_blocks(block.children, lines)
        return "\n".join(QUOTE_MARK + line for line in inner.split("\n"))
    if kind == "table_open":
        return "\n".join(" | ".join(row) for row in table_rows(block) if any(row))
    if kind == "hr":
        return RULE
    if block.children:
        return render_blocks(block.children, lines)
    return block.token.content.removesuffix("\n")


def _render_list(block: Node, lines: Sequence[str]) -> str:
    numbers = [item.token.info for item in block.children]
    if len(set(numbers)) == 1 and len(numbers) > 1 and numbers[0]:
        numbers = [str(int(numbers[0]) + step) for step in range(len(numbers))]
    written, last = [], None
    for item, number in zip(block.children, numbers, strict=True):
        start, end = span_of(item, lines)
        if last is not None:
            written.append("\n" * (start - last + 1))
        last = end
        words = FOLLOWING.sub(INDENT, render_blocks(item.children, lines))
        markup = item.token.markup
        mark = f"{number}{markup} " if number else f"{BULLET if markup == '*' else markup} "
        if not number and (box := TASKS.get(words[:4])):
            mark, words = box, words[4:]
        written.append(mark + words)
    return "".join(written)


def table_rows(table: Node) -> Iterator[list[str]]:
    """The words of the cells, row by row, the head first."""
    for part in table.children:
        for row in part.children:
            yield [
                render_inline(cell.children[0].token.children or []).replace("\n", " ").strip()
                if cell.children
                else ""
                for cell in row.children
            ]


# --- Within a line --------------------------------------------------------------


def render_inline(tokens: Sequence[Token]) -> str:
    """The words of a paragraph, a heading or a cell."""
    tags = [found[0].lower() for t in tokens if (found := TAG.match(t.content))]
    styles = {name for name in STYLES if f"<{name}" in tags and f"</{name}" in tags}
    words = [_words(token, styles) for token in tokens]
    _put_back_marks(tokens, words)
    link: list[int] = []
    for index, token in enumerate(tokens):
        if token.type == "link_open":
            link.append(index)
        elif token.type == "link_close" and link:
            opened = link.pop()
            said = "".join(words[opened:index])
            address = str(tokens[opened].attrs.get("href", ""))
            words[index] = f" ({address})" if address not in (said, f"mailto:{said}", "") else ""
    return "".join(words)


def _words(token: Token, styles: set[str]) -> str:
    match token.type:
        case "softbreak" | "hardbreak":
            return "\n"
        case "text_special" if token.info == "escape":
            return token.content if token.content in UNESCAPED else token.markup
        case "html_inline":
            if BREAK.fullmatch(token.content):
                return "\n"
            found = TAG.match(token.content)
            return "" if found and found[1].lower() in styles else token.content
        case "image":
            return f"{token.content} ({token.attrs['src']})".lstrip(" ")
    return token.content


def _put_back_marks(tokens: Sequence[Token], words: list[str]) -> None:
    """Write the marks that are no emphasis: those of a product, a face, a drawn-out 好~~."""
    counts = list(accumulate((sum(map(str.isalnum, word)) for word in words), initial=0))
    sizes = list(accumulate((len("".join(word.split())) for word in words), initial=0))
    lefts = list(accumulate((word[-1:] for word in words), lambda old, new: new or old, initial=""))
    rights = list(
        accumulate((word[:1] for word in reversed(words)), lambda old, new: new or old, initial="")
    )[::-1]
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.type in ("em_open", "strong_open", "s_open"):
            opened.append(index)
        elif token.type in ("em_close", "strong_close", "s_close") and opened:
            start = opened.pop()
            around, inside = (lefts[start], rights[index]), (rights[start], lefts[index])
            letters, size = counts[index] - counts[start], sizes[index] - sizes[start]
            is_name = (
                token.markup == "__"
                and index - start < 5
                and "".join(words[start:index]).isidentifier()
            )
            is_face = len(token.markup) == 1 and letters * 2 < size
            if is_name or is_face or not _is_meant(token.type, *around, *inside):
                words[start] = words[index] = token.markup


def _is_meant(mark: str, before: str, after: str, first: str, last: str) -> bool:
    """Whether a pair of marks is emphasis, by the characters around it and the outermost in it."""
    if mark == "s_close":
        return after.isalnum() or not before.isalnum()
    if (
        before
        and after
        and all(one.isascii() and (one.isalnum() or one in "()") for one in (before, after))
    ):
        return False
    return (first.isalnum() or first in BEGINS_WORDS) and (last.isalnum() or last in ENDS_WORDS)
