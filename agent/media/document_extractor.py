"""The words of one document, read in a process of its own: ``python -m
agent.media.document_extractor CHARACTERS``.

Documents come from strangers, and their formats are made for more than text: a small
file can ask for any amount of time and memory. Here both are bounded by the operating
system, and nothing of the server can be reached: no settings, no environment, no
database. Standard input is the document; standard output becomes one JSON object,
``{"text": str, "is_whole": bool}`` or ``{"reason": str}`` with a word of :data:`UnreadableReason`.
Any other end, a traceback included, means that the document cannot be read.
"""

import codecs
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Literal

import docx
import pypdf
from docx.table import Table

from agent.domain.file_types import HEAD, sniff_mime_type
from tools.processes.own_limits import limit_this_process
from tools.text.encodings import guessed_encoding, without_mark

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


UnreadableReason = Literal["kind", "empty", "password", "bomb"]

MEMORY_BYTES = 512 * 2**20
CPU_SECONDS = 10
MAX_PAGES = 200
#: What a DOCX may unpack to; Python's reader stops each entry at the size it declares.
MAX_ENTRIES = 5_000
MAX_UNPACKED = 64 * 2**20
#: No encoding that is read takes more bytes for a character.
BYTES_PER_CHARACTER = 4
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n){2,}")


class UnreadableDocumentError(Exception):
    """The document holds no words that can be had."""

    def __init__(self, reason: UnreadableReason) -> None:
        super().__init__(reason)
        self.reason: UnreadableReason = reason


@dataclass(frozen=True, slots=True)
class DocumentExcerpt:
    """The beginning of a document's words."""

    text: str
    is_whole: bool


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's words piece by piece, and whether the pieces are all of it."""

    pieces: Iterator[str]
    are_all: bool = True


def main() -> None:
    limit_this_process(cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    try:
        answer: dict[str, object] = asdict(
            extract_excerpt(sys.stdin.buffer.read(), int(sys.argv[1]))
        )
    except UnreadableDocumentError as error:
        answer = {"reason": error.reason}
    sys.stdout.write(json.dumps(answer))


def extract_excerpt(data: bytes, characters: int) -> DocumentExcerpt:
    """The first ``characters`` of the words in ``data``. Raises :class:`UnreadableDocumentError`
    when there are none.

    A damaged document raises whatever its reader raises.
    """
    kind = document_kind(data)
    if not kind:
        raise UnreadableDocumentError("kind")
    words = READERS[kind](data, characters)
    text, is_cut = _joined(words.pieces, characters)
    text = BLANK_LINES.sub("\n\n", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if not text:
        raise UnreadableDocumentError("empty")
    return DocumentExcerpt(text, words.are_all and not is_cut)


def _joined(pieces: Iterator[str], characters: int) -> tuple[str, bool]:
    """``pieces`` line by line up to ``characters``, and whether something was left out."""
    taken, length = [], 0
    for piece in pieces:
        taken.append(piece)
        length += len(piece) + 1
        if length > characters + 1:
            break
    text = "\n".join(taken)
    return text[:characters], len(text) > characters


def _pdf(data: bytes, characters: int) -> DocumentText:
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise UnreadableDocumentError("password")
    pages = (page.extract_text() for page in islice(reader.pages, MAX_PAGES))
    return DocumentText(pages, are_all=len(reader.pages) <= MAX_PAGES)


def _docx(data: bytes, characters: int) -> DocumentText:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
    if not any(entry.filename == "word/document.xml" for entry in entries):
        raise UnreadableDocumentError("kind")
    if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_UNPACKED:
        raise UnreadableDocumentError("bomb")
    return DocumentText(_blocks(docx.Document(io.BytesIO(data)).iter_inner_content()))


def _blocks(blocks: Iterator[object]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Table):
            yield from ("\t".join(cell.text for cell in row.cells) for row in block.rows)
        else:
            yield getattr(block, "text", "")


def _text(data: bytes, characters: int) -> DocumentText:
    start = data[: characters * BYTES_PER_CHARACTER + BYTES_PER_CHARACTER]
    text = decode_document(start, is_whole=len(start) == len(data))
    if CONTROL.search(text):
        raise UnreadableDocumentError("kind")
    return DocumentText(iter([text]), are_all=len(start) == len(data))


def decode_document(data: bytes, *, is_whole: bool) -> str:
    """``data`` as text in the encoding it is in; without ``is_whole`` it may end within a
    character.

    Raises :class:`UnreadableDocumentError` when no encoding makes sense of it.
    """
    unmarked, mark = without_mark(data)
    if mark:
        return codecs.getincrementaldecoder(mark)("replace").decode(unmarked, is_whole)
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, is_whole)
    except UnicodeDecodeError:
        encoding = guessed_encoding(data)
        if not encoding:
            raise UnreadableDocumentError("kind") from None
        return codecs.getincrementaldecoder(encoding)("replace").decode(data, is_whole)


READERS: dict[DocumentKind, Callable[[bytes, int], DocumentText]] = {
    "pdf": _pdf,
    "zip": _docx,
    "text": _text,
}

if __name__ == "__main__":
    main()
