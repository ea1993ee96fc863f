"""CQ codes: the string form of a message, ``hello [CQ:at,qq=10001]``.

Rules: https://github.com/botuniverse/onebot-11/blob/master/message/string.md.
They are only read. A message is always sent as an array: in a string, words of
the model that look like a code would be carried out by the client.
"""

import re
from typing import Any

OPENING = "[CQ:"
MAX_SEGMENTS = 10_000
_TYPE = re.compile(r"[A-Za-z0-9_.-]+")


def parse_cq(text: str) -> list[dict[str, Any]]:
    """``text`` as segments, in linear time whatever it holds.

    An incomplete code (no closing bracket before the next code, no type) is text. Adjacent text is
    one segment, and there are no empty text segments. After ``MAX_SEGMENTS``, more than any real
    message has, the rest is left as text.
    """
    segments: list[dict[str, Any]] = []
    text_from = 0
    opening = text.find(OPENING)
    while opening >= 0 and len(segments) <= MAX_SEGMENTS:
        following = text.find(OPENING, opening + len(OPENING))
        # The search ends at the next code, so that no text is scanned again for every code before
        # it.
        closing = text.find("]", opening, following if following >= 0 else len(text))
        code = _parse_code(text[opening + len(OPENING) : closing]) if closing >= 0 else None
        if code:
            segments += _text_segment(text[text_from:opening])
            segments.append(code)
            text_from = closing + 1
        opening = following
    return segments + _text_segment(text[text_from:])


def _parse_code(body: str) -> dict[str, Any] | None:
    name, _, parameters = body.partition(",")
    if not _TYPE.fullmatch(name):
        return None
    pairs = (parameter.partition("=") for parameter in parameters.split(","))
    return {"type": name, "data": {key: _unescape(value) for key, _, value in pairs if key}}


def _text_segment(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "data": {"text": _unescape(text)}}] if text else []


def _unescape(text: str) -> str:
    if "&" not in text:
        return text
    text = text.replace("&#91;", "[").replace("&#93;", "]").replace("&#44;", ",")
    return text.replace("&amp;", "&")  # last: "&amp;#91;" is the text "&#91;"
