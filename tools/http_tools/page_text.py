"""The words of a page, without its tags. Pure, and linear in the length of the page, however it is
written."""

import html
import re

_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)")
_UNSEEN = {
    kind: re.compile(f"</{kind}", re.IGNORECASE | re.ASCII)
    for kind in ("script", "style", "noscript", "template", "svg")
}
_INLINE = {
    "a",
    "abbr",
    "b",
    "code",
    "em",
    "font",
    "i",
    "mark",
    "q",
    "s",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "u",
}
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")


PAGE_CHARS = 512 * 1024
"""Characters of a page that are read: many times the text that the model gets of them."""


def extract_text(page: str) -> str:
    """What a reader of ``page`` sees, more or less: one line for each block, nothing of scripts."""
    words: list[str] = []
    page = page[:PAGE_CHARS]
    at = 0
    while (tag := page.find("<", at)) >= 0:
        words.append(page[at:tag])
        name = _TAG.match(page, tag)
        if name is None and not page.startswith(("<!", "<?"), tag):
            words.append("<")
            at = tag + 1
            continue
        kind = name[1].lower() if name else ""
        words.append("" if kind in _INLINE else "\n")
        at = _end(page, tag, kind)
    words.append(page[at:])
    return _LINES.sub("\n", _SPACES.sub(" ", html.unescape("".join(words)))).strip()


def _end(page: str, tag: int, kind: str) -> int:
    """Where the text continues after the tag, and after what it hides."""
    if page.startswith("<!--", tag):
        return _after(page, "-->", tag)
    end = _after(page, ">", tag)
    if kind in _UNSEEN and page[tag + 1] != "/" and page[end - 2 : end] != "/>":
        closing = _UNSEEN[kind].search(page, end)
        return _after(page, ">", closing.end()) if closing else len(page)
    return end


def _after(text: str, mark: str, start: int) -> int:
    place = text.find(mark, start)
    return len(text) if place < 0 else place + len(mark)
