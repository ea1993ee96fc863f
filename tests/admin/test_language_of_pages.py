"""Whoever reads Chinese meets no sentence of ours in English: every page, with what can go wrong in
every row. What others said stands in an element that says so."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from django.test import Client

from tests.admin.faulty_rows import fill_with_faults
from tests.admin.record import CHINESE

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
#: Elements whose text is code, or raw, or what a person typed.
RAW = {"code", "pre", "details", "textarea", "script", "style", "svg", "head"}
EMPTY = {
    "area",
    "base",
    "br",
    "col",
    "embed",
    "hr",
    "img",
    "input",
    "link",
    "meta",
    "source",
    "wbr",
}
#: Attributes that people read or hear.
SAID = ("title", "aria-label", "placeholder", "alt")
NOT_FOLLOWED = ("/admin/logout/", "/admin/jsi18n/")
NAMES = {
    *("onebot", "napcat", "llbot", "lagrange", "go", "cqhttp", "mcp", "http", "https", "api", "qq"),
    *("openai", "json", "jsonl", "csv", "markdown", "html", "utf", "url", "ip", "id", "websocket"),
    *("google", "gemini", "lm", "studio", "llama", "cpp", "claude", "desktop", "vs", "code"),
    *("cherry", "mcpservers", "streamable", "webauthn", "schema", "authorization", "bearer"),
    *("frostagent", "chat", "completions", "github", "docker", "linux", "python", "ctrl", "shift"),
}
WORDS = re.compile(r"[A-Za-z][A-Za-z’']+(?:[,;:.]? +[A-Za-z][A-Za-z’']+)+")


class Reader(HTMLParser):
    """The words of a page that are the program's own."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        is_raw = tag in RAW or ("lang" in given and tag != "html") or given.get("translate") == "no"
        if not self._is_raw and not is_raw:
            self.found += [given[name] for name in SAID if given.get(name)]
        if tag not in EMPTY:
            self._open.append((tag, is_raw))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if not self._is_raw:
            self.found.append(data)

    @property
    def _is_raw(self) -> bool:
        return any(is_raw for _tag, is_raw in self._open)


def latin_sentences(page: str) -> list[str]:
    """Two Latin words in a row, or more, of which one is no name."""
    reader = Reader()
    reader.feed(page)
    own = (
        re.sub(r"甲-[a-z-]+(?: hello)?|[\w./:-]*[\d_@/][\w./:-]*", "·", text)
        for text in reader.found
    )
    found = [one for text in own for one in WORDS.findall(text)]
    return [one for one in found if not set(re.findall(r"[a-z’']+", one.lower())) <= NAMES]


def pages_of(client: Client) -> Iterator[tuple[str, str]]:
    """Every page that a link leads to, each once, without what an address asks besides."""
    waiting, known = ["/admin/"], {"/admin/"}
    while waiting:
        address = waiting.pop()
        answer = client.get(address)
        if answer.streaming or "html" not in answer.headers.get("Content-Type", "html"):
            continue
        page = answer.content.decode(errors="replace")
        yield address, page
        for link in re.findall(r'(?:href|hx-get)="(/admin/[^"?#]*)', page):
            if link not in known and not link.startswith(NOT_FOLLOWED):
                known.add(link)
                waiting.append(link)


def test_no_page_says_a_sentence_in_english_to_who_reads_chinese(admin_user):
    fill_with_faults()
    client = Client(headers=CHINESE, raise_request_exception=False)
    client.force_login(admin_user)
    told: dict[str, str] = {}
    for address, page in pages_of(client):
        told |= dict.fromkeys(latin_sentences(page), address)
    assert told == {}
