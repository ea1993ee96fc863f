"""Words that come from servers, plugins and documents, before anybody else sees them. Pure."""

import re
import unicodedata

from tools.text.fences import neutralize_marks

_ALLOWED = "\n\t"
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn")
"""Unicode categories of what changes how text is read without being seen: controls, directions,
tags, surrogates."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[ -~\n\u4e00-\u9fff]*")


def clean_untrusted(text: object, limit: int) -> str:
    """``text`` without what cannot be seen or imitates a mark, at most ``limit`` characters; "" for
    anything but text."""
    if not isinstance(text, str):
        return ""
    text = text[: limit * 2]  # what is taken out below is rarely more than that
    if not _PLAIN.fullmatch(text):
        text = "".join(
            sign for sign in text if sign in _ALLOWED or unicodedata.category(sign) not in _HIDDEN
        )
    text = neutralize_marks(text.strip())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def clean_line(text: object, limit: int) -> str:
    """``text`` as one line of a log or a sentence."""
    return " ".join(clean_untrusted(text, limit).split())


def clean_quote(text: object, limit: int = 40) -> str:
    """``text`` to stand between quotation marks of a sentence for the model, which it cannot
    close."""
    return clean_line(re.sub(r"[“”\"'`\[\]{}<>]", " ", clean_line(text, limit)), limit)


def clean_tool_name(name: str, limit: int = 64) -> str:
    """``name`` with only what model endpoints accept in the name of a function; "" when nothing is
    left."""
    return _NOT_IN_NAMES.sub("_", name).strip("_")[:limit] if name.strip("_- ") else ""
