"""Texts from outside with everything that cannot be seen written out. Pure."""

import json
import re
import unicodedata
from typing import Any

from tools.text.readable import drop_surrogates

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


def escape_invisible_json(value: Any) -> str:
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
