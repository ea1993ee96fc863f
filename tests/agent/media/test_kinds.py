"""What a file is, by its first bytes."""

import pytest

from agent.domain.file_types import HEAD, PICTURES, sniff_mime_type
from tests.pictures import HEIC, animated, picture

PICTURE_FILES = {
    "image/jpeg": picture("JPEG"),
    "image/png": picture("PNG"),
    "image/gif": animated("GIF"),
    "image/webp": picture("WEBP"),
    "image/bmp": picture("BMP"),
    "image/heic": HEIC,
    "image/avif": picture("AVIF"),
}


@pytest.mark.parametrize("mime", PICTURE_FILES)
def test_a_real_picture_is_known_by_its_first_bytes(mime):
    assert sniff_mime_type(PICTURE_FILES[mime][:HEAD]) == mime
    assert mime in PICTURES


@pytest.mark.parametrize(
    ("head", "mime"),
    [
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"ID3\x04\x00", "audio/mpeg"),
        (b"\x02#!SILK_V3", "audio/silk"),
        (b"#!AMR\n", "audio/amr"),
        (b"OggS\x00\x02", "audio/ogg"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"PK\x03\x04\x14\x00", "application/zip"),
        (b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41", "video/mp4"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1heicmiaf", "image/heic"),
        (b"\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1xxxx", ""),
    ],
)
def test_other_files_are_known_too(head, mime):
    assert sniff_mime_type(head) == mime


@pytest.mark.parametrize(
    "head",
    [b"", b"BMW is a car", b"RIFF", b"<svg xmlns=", b"<html>", b"\x00\x00\x00\x18ftyp", b"GIF90a"],
)
def test_what_is_not_known_has_no_type_or_at_least_none_of_a_picture(head):
    assert sniff_mime_type(head) not in PICTURES
