"""Cards: what clients share with each other as JSON or XML, read as far as a title. Pure.

https://github.com/botuniverse/onebot-11/blob/master/message/segment.md (json, xml); what is in them
is QQ's own and has no description.
"""

import html
import json
import re
from typing import Any

from onebot.protocol.values import value_text
from tools.text.fences import neutralize_marks
from tools.text.storable import make_storable

#: Characters of a card that are read for a title, and that are shown of one without a title.
LONGEST_CARD, SHOWN_CARD = 2**18, 2_000
#: Characters of a title, or of other words beside a message's own.
LONGEST_TITLE = 200

_OPENING, _CLOSING = "[［﹇", "]］﹈"
_BRACKET = re.compile(f"[{re.escape(_OPENING + _CLOSING)}]")
_ENCLOSED = str.maketrans(dict.fromkeys(_OPENING, "〔") | dict.fromkeys(_CLOSING, "〕"))
_XML_TITLE = re.compile(r"<title\b[^<>]*>\s*(?:<!\[CDATA\[)?([^<>\]]*)", re.IGNORECASE)
_XML_PROMPT = re.compile(r"""\bbrief=["']([^"'<>]*)""", re.IGNORECASE)
#: Small programs have their own name for a title; what is shared is in the description.
_PROGRAM = "com.tencent.miniapp"


def one_line(value: object, longest: int = LONGEST_TITLE) -> str:
    """A JSON value as words on one line, cut where they are too long, to stand between brackets."""
    words = " ".join(make_storable(value_text(value)[: 2 * longest]).split())
    return keep_enclosed(words if len(words) <= longest else f"{words[:longest]}…")


def keep_enclosed(words: str) -> str:
    """``words`` on one line and, where one of their square brackets has no counterpart, with others
    in place of all: what stands behind ``]`` would be read as said by the one who shares them."""
    words = " ".join(words.splitlines())
    depth = 0
    for sign in _BRACKET.findall(neutralize_marks(words)):
        depth += 1 if sign in _OPENING else -1
        if depth < 0:
            break
    return words.translate(_ENCLOSED) if depth else words


def render_card(kind: str, data: object) -> str:
    """A card by its title or its prompt; by the beginning of its text where it has neither."""
    title = _json_title(data) if kind == "json" else _xml_title(value_text(data))
    if title:
        return f"[卡片:{title}]"
    text = value_text(data)
    shown = f"{text[:SHOWN_CARD]}…" if len(text) > SHOWN_CARD else text
    return f"[{kind}:{keep_enclosed(shown) if ']' in shown else shown}]"


def _json_title(data: object) -> str:
    if isinstance(data, str):
        try:
            data = json.loads(data) if len(data) <= LONGEST_CARD else None
        except (ValueError, RecursionError):
            return ""
    if not isinstance(data, dict):
        return ""
    views = _views(data.get("meta"))
    title = next((found for view in views if (found := _words(view.get("title")))), "")
    if value_text(data.get("app")).startswith(_PROGRAM):
        about = next((found for view in views if (found := _words(view.get("desc")))), "")
        title = f"{title} {about}".strip()
    return title or _words(data.get("title")) or _words(data.get("prompt"))


def _views(meta: object) -> list[dict[str, Any]]:
    """What ``meta`` holds under names that differ from card to card."""
    values = meta.values() if isinstance(meta, dict) else ()
    return [value for value in values if isinstance(value, dict)]


def _words(value: object) -> str:
    return one_line(value) if isinstance(value, str | int | float) else ""


def _xml_title(text: str) -> str:
    text = text[:LONGEST_CARD]
    for pattern in (_XML_TITLE, _XML_PROMPT):
        for found in pattern.finditer(text):
            if title := one_line(html.unescape(found[1])):
                return title
    return ""
