"""How the words of a file are got at, by its content and never by its name. Pure."""

from typing import Literal

from agent.domain.file_types import HEAD, sniff_mime_type

DocumentKind = Literal["pdf", "zip", "text", ""]

#: Bytes that are checked to distinguish text from binary data.
LOOK_AT = 8192
BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
#: Files of words wrapped in so much else that their text alone says little.
MARKED_UP = (b"{\\rtf", b"%!PS")
#: What sloppy programs write before a PDF.
BLANKS = b"\xef\xbb\xbf\0 \t\r\n"


def document_kind(data: bytes) -> DocumentKind:
    """What reads ``data``; "" where nothing does.

    "text" stands for whatever has no sign of being another thing: whether an encoding
    makes sense of it is found out by reading.
    """
    start, mime = data[:LOOK_AT], sniff_mime_type(data[:HEAD])
    if start.lstrip(BLANKS).startswith(b"%PDF-"):
        return "pdf"
    if mime == "application/zip":
        return "zip"
    return "text" if not mime and not start.startswith(MARKED_UP) and _may_be_text(start) else ""


def _may_be_text(start: bytes) -> bool:
    zeros = start.count(0)
    return zeros == 0 or start.startswith(BYTE_ORDER_MARKS) or _is_wide(start, zeros)


def _is_wide(start: bytes, zeros: int) -> bool:
    """Whether nearly all zero bytes stand in the same half of pairs, as in UTF-16 without a
    mark."""
    return max(start[::2].count(0), start[1::2].count(0)) * 20 >= zeros * 19
