"""Bytes of an answer as text, whatever they claim to be. Pure."""

from collections.abc import Iterator

from charset_normalizer.utils import any_specified_encoding

from tools.text.encodings import guessed_encoding, without_mark

_IN_PAGE = 2_048
"""Bytes of a page that are searched for its charset (the HTML standard has 1,024)."""
_MEANT = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "ascii": "utf-8",
    "utf_7": "utf-8",
    "latin_1": "cp1252",
}
"""What pages mean by what they claim (WHATWG Encoding, 4.2)."""


def decode_text(body: bytes, content_type: str) -> str:
    """``body`` as text: by its mark, by what it claims, or as whatever fits; what fits nothing is
    ``�``. Never raises."""
    unmarked, mark = without_mark(body)
    if mark:
        return unmarked.decode(mark, "replace")
    for encoding in _encodings(body, content_type):
        try:
            return body.decode(encoding)
        except (UnicodeError, LookupError):  # it also knows names of what is no charset
            continue
    return body.decode("utf-8", "replace")


def _encodings(body: bytes, content_type: str) -> Iterator[str]:
    """What ``body`` may be in, the likeliest first."""
    page = body if "html" in content_type else b""
    for claimed in (
        any_specified_encoding(content_type.encode()),
        any_specified_encoding(page, _IN_PAGE),
    ):
        if claimed:
            yield _MEANT.get(claimed, claimed)
    yield "utf-8"
    if guessed := guessed_encoding(body):
        yield guessed
