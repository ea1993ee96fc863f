"""The type of a file, by its first bytes and never by its declared type. Pure.

Signatures: https://mimesniff.spec.whatwg.org/ and, for the formats in the ISO base
media container, the brands of https://mp4ra.org/registered-types/brands.
"""

#: Bytes from the beginning of a file that are enough to detect its type.
HEAD = 64

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"#!AMR", "audio/amr"),
    (b"#!SILK", "audio/silk"),
    (b"\x02#!SILK", "audio/silk"),  # Tencent puts one byte before it
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/avi"}
_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis"), "image/heic"),
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    b"qt  ": "video/quicktime",
}
#: Brands that say only that there is a picture; which one is said by a compatible brand.
_PICTURE_BRANDS = frozenset({b"mif1", b"msf1"})

#: Sizes of the header behind "BM": text may begin with those two letters.
_BITMAP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})

PICTURES = frozenset(
    {"image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp", "image/heic", "image/avif"},
)


def sniff_mime_type(head: bytes) -> str:
    """The MIME type of a file that begins with ``head``; "" for one that is not known here."""
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return _iso_media(head)
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in _BITMAP_HEADERS:
        return "image/bmp"
    return next((mime for signature, mime in _SIGNATURES if head.startswith(signature)), "")


def _iso_media(head: bytes) -> str:
    major, size = head[8:12], int.from_bytes(head[:4], "big")
    compatible = [head[at : at + 4] for at in range(16, min(size, len(head)), 4)]
    brands = compatible if major in _PICTURE_BRANDS else [major]
    known = [_BRANDS[brand] for brand in brands if brand in _BRANDS]
    return known[0] if known else "" if major in _PICTURE_BRANDS else "video/mp4"
