"""Recorded values, and texts from outside, as text that people can read: everything that cannot be
seen is written out. Pure.
"""

import html
import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

#: Characters of one text that are shown; pictures travel as texts of many megabytes.
TEXT_LIMIT = 20_000
#: Levels of nesting that are shown.
DEPTH_LIMIT = 50


def format_readable(value: object, *, limit: int = TEXT_LIMIT) -> str:
    """``value`` as indented JSON with real line breaks inside its texts.

    Texts longer than ``limit`` characters are cut, and say how much is left out.
    """
    return drop_surrogates("".join(_pieces(value, "\n", limit)))


def drop_surrogates(text: str) -> str:
    """``text`` without the halves of characters that JSON can hold and a page cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def shorten_text(text: str, limit: int = TEXT_LIMIT) -> str:
    """The beginning of ``text``, and how much there is beyond it."""
    rest = len(text) - limit
    if rest <= 0:
        return text
    more = ngettext("%(count)s more character", "%(count)s more characters", rest) % {
        "count": f"{rest:,}"
    }
    return f"{text[:limit]}… ({more})"


_MARKUP = re.compile("[&<>\"']")


def fill(form: str, *texts: object) -> SafeString:
    """As ``format_html``, for what a page has many of: it takes a third of the time."""
    safe = (
        html.escape(one) if _MARKUP.search(one) and not isinstance(one, SafeString) else one
        for one in map(str, texts)
    )
    return SafeString(form.format(*safe))


def json_block(value: object) -> str:
    """``value`` as a block of a page; "-" for nothing."""
    return (
        format_html('<pre class="json">{}</pre>', format_readable(value))
        if value not in (None, "", [], {})
        else "-"
    )


def text_block(text: str) -> str:
    """A text of others with its own line breaks, in whatever language; "-" for nothing."""
    return (
        format_html('<div class="words" lang="">{}</div>', drop_surrogates(shorten_text(text)))
        if text
        else "-"
    )


def arguments_text(arguments: Any) -> str:
    """A call's arguments, which models send as JSON text, as JSON; broken text as it is."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return drop_surrogates(shorten_text(arguments))
    return format_readable(arguments)


def _pieces(value: object, newline: str, limit: int) -> Iterator[str]:
    if len(newline) > 2 * DEPTH_LIMIT:
        yield "…"
    elif isinstance(value, str):
        yield _quoted(value, newline, limit)
    elif isinstance(value, dict) and value:
        heads = [(f"{_quoted(str(key), '', limit)}: ", item) for key, item in value.items()]
        yield from _block("{}", heads, newline, limit)
    elif isinstance(value, list) and value:
        yield from _block("[]", [("", item) for item in value], newline, limit)
    else:
        yield json.dumps(value, ensure_ascii=False)


def _block(
    brackets: str, items: list[tuple[str, object]], newline: str, limit: int
) -> Iterator[str]:
    deeper = newline + "  "
    yield brackets[0]
    for index, (head, item) in enumerate(items):
        yield ("," if index else "") + deeper + head
        yield from _pieces(item, deeper, limit)
    yield newline + brackets[1]


def _quoted(text: str, newline: str, limit: int) -> str:
    lines = (
        json.dumps(line, ensure_ascii=False)[1:-1] for line in shorten_text(text, limit).split("\n")
    )
    return '"' + (newline or "\\n").join(lines) + '"'


#: Control and format characters, unassigned ones, and those of unknown appearance. Of all spaces
#: only the usual one looks like one.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
#: Signs of other categories that leave no mark of their own: joiners, fillers and variation
#: selectors.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
#: What turns the direction of the text around it.
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escape_direction_chars(text: str) -> str:
    """``text`` with every character that turns the direction of reading as its escape: a name
    with one would show what stands beside it backwards. Emoji stay as they are."""
    return _DIRECTION.sub(lambda found: _seen(found[0]), text)


def escape_invisible_chars(text: str, keep: str = "") -> str:
    """``text`` with every invisible character as its escape, except those in ``keep``."""
    return "".join(char if char in keep else _seen(char) for char in text)


def escape_invisible_json(value: object) -> str:
    """``value`` as indented JSON, all of it: the line breaks are those of the layout, never of a
    text."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        text = json.dumps(value, ensure_ascii=False)
    return drop_surrogates(escape_invisible_chars(text, keep="\n"))


def _seen(char: str) -> str:
    if char == " " or not (unicodedata.category(char) in _UNSEEN or _BLANK.match(char)):
        return char
    return char.encode("unicode_escape").decode("ascii")
