"""Recorded values as text that people can read. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.html import format_html
from django.utils.translation import ngettext

#: Characters of one text that are shown; pictures travel as texts of many megabytes.
TEXT_LIMIT = 20_000
#: Levels of nesting that are shown.
DEPTH_LIMIT = 50


def format_readable(value: Any, *, limit: int = TEXT_LIMIT) -> str:
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


def json_block(value: Any) -> str:
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


def _pieces(value: Any, newline: str, limit: int) -> Iterator[str]:
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


def _block(brackets: str, items: list[tuple[str, Any]], newline: str, limit: int) -> Iterator[str]:
    deeper = newline + "  "
    yield brackets[0]
    for place, (head, item) in enumerate(items):
        yield ("," if place else "") + deeper + head
        yield from _pieces(item, deeper, limit)
    yield newline + brackets[1]


def _quoted(text: str, newline: str, limit: int) -> str:
    lines = (
        json.dumps(line, ensure_ascii=False)[1:-1] for line in shorten_text(text, limit).split("\n")
    )
    return '"' + (newline or "\\n").join(lines) + '"'
