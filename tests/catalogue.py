"""The texts of the project, read by Babel: what the catalogue in ``locale/`` has to hold."""

import ast
import io
from collections.abc import Iterator
from typing import IO, Any

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir, extract_python
from babel.messages.frontend import parse_keywords
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from django.utils.translation.template import templatize

from tests.environment import PROJECT

SOURCES = ("agent", "frostproject", "onebot", "tools", "templates")
PO_FILE = PROJECT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
MO_FILE = PO_FILE.with_suffix(".mo")
#: Django's own names beside those Babel knows, as its ``-k`` option takes them.
KEYWORDS = ("gettext_lazy", "ngettext_lazy:1,2", "pgettext_lazy:1c,2", "gettext_noop")


def extract_code(file: IO[bytes], keywords: Any, comment_tags: Any, options: Any) -> Iterator[Any]:
    """Babel's extractor for Python, which unlike its own sees calls inside f-strings on every
    Python."""
    for node in ast.walk(ast.parse(file.read())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in keywords
        ):
            texts = tuple(arg.value if isinstance(arg, ast.Constant) else None for arg in node.args)
            yield node.lineno, node.func.id, texts[0] if len(texts) == 1 else texts, []


def extract_template(
    file: IO[bytes], keywords: Any, comment_tags: Any, options: Any
) -> Iterator[Any]:
    """Babel's extractor for Django templates: Django itself turns one into calls of gettext."""
    code = templatize(file.read().decode("utf-8"))
    return extract_python(io.BytesIO(code.encode("utf-8")), keywords, comment_tags, options)


def texts_in_use() -> dict[tuple[Any, str | None], str]:
    """Every text to translate (singular and plural as a pair), with its context, and the file that
    uses it."""
    method_map = [
        ("**.py", "tests.catalogue:extract_code"),
        ("**.html", "tests.catalogue:extract_template"),
    ]
    keywords = DEFAULT_KEYWORDS | parse_keywords(KEYWORDS)
    found = (
        (name, hit)
        for name in SOURCES
        for hit in extract_from_dir(PROJECT / name, method_map, keywords=keywords)
    )
    return {
        (message, context): f"{name}/{file}:{line}"
        for name, (file, line, message, _comments, context) in found
    }


def catalogue() -> Catalog:
    with PO_FILE.open("rb") as file:
        return read_po(file, locale="zh_Hans")


def compiled(catalog: Catalog) -> bytes:
    buffer = io.BytesIO()
    write_mo(buffer, catalog)
    return buffer.getvalue()
