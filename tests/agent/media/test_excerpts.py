"""What is read out of documents, and that the process that reads them bears the harm alone."""

import asyncio
import functools
import io
import os
import random
import signal
import zipfile
import zlib
from pathlib import Path

import docx
import pypdf
import pytest

from agent.domain.types import MediaUnavailable
from agent.media import document_reader
from agent.media.document_extractor import (
    DocumentExcerpt,
    UnreadableDocumentError,
    extract_excerpt,
)
from agent.media.document_reader import BROKEN, REASONS, DocumentBeginning, DocumentExtractor

POEM = "春眠不觉晓，处处闻啼鸟。\n夜来风雨声，花落知多少。\n"


def read(content: bytes, characters: int = 1000) -> DocumentExcerpt:
    """The beginning of a document with that content, read here."""
    return extract_excerpt(content, characters)


@pytest.fixture
def read_apart(tmp_path):
    """``await read_apart(content)``: the same by the process that reads documents."""

    async def read_apart(content: bytes) -> DocumentBeginning:
        document = tmp_path / "document"
        document.write_bytes(content)
        return await DocumentExtractor().beginning(document, 1000)

    return read_apart


def pdf(*pages: str, stream_filter: bytes = b"", encode=lambda content: content) -> bytes:
    """A PDF with one line of Latin text on each page."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    kids = []
    for text in pages:
        content = encode(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode("latin-1"))
        objects.append(
            b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), stream_filter, content)
        )
        font_and_size = b"/MediaBox[0 0 200 200]/Resources<</Font<</F1 3 0 R>>>>"
        objects.append(
            b"<</Type/Page/Parent 2 0 R%s/Contents %d 0 R>>" % (font_and_size, len(objects))
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), len(kids))
    return numbered(objects)


def numbered(objects: list[bytes]) -> bytes:
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        out + b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 "
        b"R>>\nstartxref\n%d\n%%%%EOF\n"
        % (
            size,
            table,
            size,
            len(out),
        )
    )


def saved(document) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def letter() -> bytes:
    document = docx.Document()
    document.add_heading("通知")
    document.add_paragraph("各位同学:")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "时间", "周五"
    document.add_paragraph("教务处")
    return saved(document)


# --- Text -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030", "utf-16-le", "big5"]
)
def test_text_is_read_in_the_encoding_it_is_in(encoding):
    words = "繁體中文測試，今天天氣很好\n" if encoding == "big5" else POEM
    assert read(words.encode(encoding)) == DocumentExcerpt(words.strip(), is_whole=True)


@pytest.mark.parametrize(
    "words", ['{"a": [1, null]}', "name,age\r\nAnn,7", "# Title\n\n* item", "def f():\n\treturn 1"]
)
def test_data_and_code_are_read_as_they_are(words):
    assert read(words.encode()).text == words.replace("\r\n", "\n")


@pytest.mark.parametrize("words", ["你好，世界", "订单号,金额\n1001,25.5\n"])
def test_short_chinese_in_the_old_encoding_is_chinese(words):
    assert read(words.encode("gb18030")).text == words.strip()


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_a_long_text_is_cut_between_characters(encoding):
    assert read((POEM * 5000).encode(encoding), characters=30) == DocumentExcerpt(
        (POEM * 2)[:30].strip(), is_whole=False
    )


def test_text_that_fills_the_room_exactly_is_whole():
    assert read("é".encode() * 50, characters=50) == DocumentExcerpt("é" * 50, is_whole=True)
    assert read("é".encode() * 51, characters=50) == DocumentExcerpt("é" * 50, is_whole=False)


# --- PDF and DOCX -----------------------------------------------------------------


def test_the_pages_of_a_pdf_are_read_in_order():
    assert read(pdf("first page", "second page")) == DocumentExcerpt(
        "first page\nsecond page", is_whole=True
    )


def test_reading_a_pdf_ends_where_enough_is_read():
    assert read(pdf(*["0123456789"] * 30), characters=25) == DocumentExcerpt(
        "0123456789\n0123456789\n012", is_whole=False
    )


def test_a_pdf_that_only_limits_printing_is_read_and_one_with_a_password_is_not():
    for password, owner in (("", "x"), ("secret", "x")):
        writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("hidden words")))
        writer.encrypt(password, owner, algorithm="AES-256")
        file = io.BytesIO()
        writer.write(file)
        if password:
            with pytest.raises(UnreadableDocumentError, match="password"):
                read(file.getvalue())
        else:
            assert read(file.getvalue()).text == "hidden words"


def test_paragraphs_and_tables_of_a_docx_are_read_in_order():
    assert read(letter()) == DocumentExcerpt("通知\n各位同学:\n时间\t周五\n教务处", is_whole=True)


# --- What is not read -------------------------------------------------------------


def archive(**entries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in entries.items():
            zipped.writestr(name, content)
    return file.getvalue()


UNREAD = {
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "kind"),
    "noise": (random.Random(7).randbytes(4000), "kind"),
    "an archive": (archive(a=b"text"), "kind"),
    "a program": (b"\x7fELF" + bytes(range(256)) * 10, "kind"),
    "rich text": (b"{\\rtf1 hello}", "kind"),
    "nothing": (b"", "empty"),
    "blanks": (b" \n\t\n", "empty"),
    "a pdf of pictures": (pdf(""), "empty"),
}


@pytest.mark.parametrize("case", UNREAD)
def test_what_holds_no_words_is_refused_with_the_reason(case):
    content, reason = UNREAD[case]
    with pytest.raises(UnreadableDocumentError, match=reason):
        read(content)


@functools.cache
def zip_bomb() -> bytes:
    """A DOCX whose text is a quarter of a gigabyte of blanks."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(letter())) as good,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bad,
    ):
        for entry in good.infolist():
            if entry.filename != "word/document.xml":
                bad.writestr(entry, good.read(entry))
        with bad.open("word/document.xml", "w") as text:
            for _ in range(256):
                text.write(b" " * 2**20)
    return file.getvalue()


def test_a_zip_bomb_is_not_unpacked():
    with pytest.raises(UnreadableDocumentError, match="bomb"):
        read(zip_bomb())


def test_a_zip_bomb_that_lies_about_its_size_does_no_harm():
    bomb = bytearray(zip_bomb())
    at = bomb.rindex(b"PK\x01\x02")
    bomb[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    with pytest.raises(Exception, match=r"zip|CRC|size") as damaged:
        read(bytes(bomb))
    assert not isinstance(damaged.value, MemoryError)


DAMAGED = {
    "pages that are their own parent": lambda: numbered(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>"]
    ),
    "a count of pages that is not so": lambda: numbered(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 99999999>>"]
    ),
    "half a file": lambda: pdf("hello")[:150],
    "a docx with broken xml": lambda: archive(
        **{"word/document.xml": b"<w:document", "[Content_Types].xml": b"<a/>"}
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_of_a_damaged_document_nothing_is_read(case):
    with pytest.raises(Exception):  # noqa: B017 - its reader's own, whatever that is
        read(DAMAGED[case]())


def test_entities_of_a_docx_reach_no_file(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(letter())) as good, zipfile.ZipFile(file, "w") as bad:
        for entry in good.infolist():
            content = good.read(entry)
            if entry.filename == "word/document.xml":
                declared = (
                    f'<!DOCTYPE d [<!ENTITY s SYSTEM "file://{secret}">]><w:document'.encode()
                )
                content = content.replace(b"<w:document", declared, 1).replace(
                    "教务处".encode(), b"&s;"
                )
            bad.writestr(entry, content)
    assert "secret" not in read(file.getvalue()).text


# --- The process ------------------------------------------------------------------


async def test_what_the_process_says_is_told(read_apart):
    assert await read_apart(letter()) == DocumentBeginning(
        "通知\n各位同学:\n时间\t周五\n教务处", is_whole=True
    )
    with pytest.raises(MediaUnavailable, match=REASONS["kind"]):
        await read_apart(b"\x89PNG\r\n\x1a\n" + bytes(100))


def repeated(content: bytes, times: int) -> bytes:
    """``content`` that many times, compressed once."""
    packer, sum_of_all = zlib.compressobj(1, wbits=-zlib.MAX_WBITS), 1
    block = packer.compress(content) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(times):
        sum_of_all = zlib.adler32(content, sum_of_all)
    return b"\x78\x01" + block * times + b"\x03\x00" + sum_of_all.to_bytes(4, "big")


HOSTILE = {
    "a stream that unpacks to a gigabyte": lambda: pdf(
        "x" * 2**24, stream_filter=b"/Filter/FlateDecode", encode=lambda c: repeated(c, 64)
    ),
    "brackets without end": lambda: b"%PDF-1.4\n1 0 obj" + b"[" * 500_000,
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_document_costs_its_process_alone(read_apart, case):
    with pytest.raises(MediaUnavailable, match=BROKEN):
        await read_apart(HOSTILE[case]())


async def test_reading_is_stopped_with_the_one_who_asked(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "endless")
    started: asyncio.Queue[asyncio.subprocess.Process] = asyncio.Queue()
    start = document_reader._start

    async def noted(document: Path, characters: int) -> asyncio.subprocess.Process:
        process = await start(document, characters)
        started.put_nowait(process)
        return process

    monkeypatch.setattr(document_reader, "_start", noted)
    reading = asyncio.create_task(DocumentExtractor().beginning(tmp_path / "endless", 10))
    writer = await asyncio.to_thread((tmp_path / "endless").open, "wb")
    process = await started.get()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await process.wait() == -signal.SIGKILL
    writer.close()


async def test_the_keys_of_the_server_are_not_in_the_process(read_apart, monkeypatch):
    monkeypatch.setenv("UPSTREAM_API_KEY", "sk-secret")
    monkeypatch.setattr(
        document_reader,
        "PROGRAM",
        ("-c", 'import os; print(\'{"text": "%s", "is_whole": 1}\' % list(os.environ))'),
    )
    assert "UPSTREAM_API_KEY" not in (await read_apart(b"x")).text
