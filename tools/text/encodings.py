"""The encoding of a text that does not name one. Pure, and without Django: documents are read in a
process of their own.

charset_normalizer is loaded with the first text, which takes a while: not on the event loop.
"""

import codecs
import sys

SAMPLE_BYTES = 65_536
"""Bytes that are read to detect an encoding."""
#: Besides UTF-8, and all encodings with a byte order mark.
ENCODINGS = ["gb18030", "big5", "shift_jis", "utf_16_le", "utf_16_be", "cp1252"]
MARKS = (  # UTF-32's marks begin with those of UTF-16
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def is_quick() -> bool:
    """Whether the library is loaded."""
    return "charset_normalizer" in sys.modules


def claimed_encoding(head: bytes) -> str | None:
    """The encoding that a content type, or the beginning of a page, says it has."""
    from charset_normalizer.utils import any_specified_encoding

    return any_specified_encoding(head)


def without_mark(data: bytes) -> tuple[bytes, str]:
    """``data`` without its byte order mark, and the encoding that it stands for; "" without one."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data[len(mark) :], encoding
    return data, ""


def guessed_encoding(data: bytes) -> str:
    """The encoding in which the beginning of ``data`` makes most sense; "" when none does."""
    import charset_normalizer

    sample = data[:SAMPLE_BYTES]
    whole_lines = sample[: sample.rfind(b"\n") + 1] if len(sample) < len(data) else sample
    found = charset_normalizer.from_bytes(whole_lines or sample, cp_isolation=ENCODINGS)
    best = found.best()
    if best is None:
        return ""
    # A few characters make sense in several encodings; among those of this application's users it
    # is nearly always this one.
    chinese = next(
        (match for match in found if match.encoding == "gb18030" and match.chaos <= best.chaos),
        best,
    )
    return chinese.encoding
