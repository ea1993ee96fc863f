"""Bytes of an answer as text, whatever they claim to be. Pure."""

import codecs
import re

_CLAIM = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_IN_PAGE = 2_048
"""Bytes of a page in which its charset is looked for (the HTML standard has 1,024)."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "ascii": "utf-8", "iso8859-1": "cp1252"}
"""What pages mean by what they claim (WHATWG Encoding, 4.2)."""
_KNOWN = re.compile(
    r"utf-(8|8-sig|16|16-le|16-be|32|32-le|32-be)|gb18030|hz|big5(hkscs)?|shift_jis(_2004|x0213)?|cp\d{3,4}|"
    r"euc_(jp|kr|jis_2004|jisx0213)|iso2022_jp(_[\w]+)?|iso2022_kr|johab|iso8859-\d+|koi8-[rtu]|mac-\w+|tis-620"
)
"""Charsets. Python's codecs also know things that are none, and some that take for ever."""
_GUESSES = ("utf-8", "gb18030")


def decode_text(body: bytes, content_type: str) -> str:
    """``body`` as text: by its mark, by what it claims, or as whatever fits; what fits nothing is
    ``�``. Never raises."""
    for charset in (*_claims(body, content_type), *_GUESSES):
        try:
            return body.decode(charset)
        except (UnicodeError, LookupError):
            continue
    return body.decode("utf-8", "replace")


def _claims(body: bytes, content_type: str) -> list[str]:
    marked = [name for mark, name in _MARKS if body.startswith(mark)]
    said = [
        _CLAIM.search(content_type),
        _CLAIM.search(body[:_IN_PAGE].decode("latin-1")) if "html" in content_type else None,
    ]
    return marked + [name for claim in said if claim and (name := _charset(claim[1]))]


def _charset(claimed: str) -> str:
    try:
        name = codecs.lookup(claimed).name
    except (LookupError, ValueError):
        return ""
    name = _WIDER.get(name, name)
    return name if _KNOWN.fullmatch(name) else ""
