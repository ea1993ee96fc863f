"""Whoever reads Chinese meets no sentence of ours in English, and nobody words that turn the
direction of reading: every kind of page, with what can go wrong in every row. What others said
stands in an element that says so."""

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from agent.pages.error_words import explain_error
from tests.admin.faulty_rows import MODEL_ERRORS, SEND_ERRORS, TOOL_ERRORS, fill_with_faults
from tests.admin.record import CHINESE

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
#: How many rows of a table are opened; the others are in its list, and in words of their own.
MOST = 3
#: What turns the direction of reading, and what is edited, which goes back as it came.
SIGNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
EDITED = re.compile(r"<textarea.*?</textarea>|value=\"[^\"]*\"", re.DOTALL)
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
    return [one for text in reader.found for one in sentences_in(text)]


def sentences_in(text: str) -> list[str]:
    own = re.sub(r"甲(?:\\u\w{4})*-[a-z-]+(?: hello)?|[\w./:-]*[\d_@/][\w./:-]*", "·", text)
    found = WORDS.findall(own)
    return [one for one in found if not set(re.findall(r"[a-z’']+", one.lower())) <= NAMES]


def pages_of(client: Client) -> Iterator[tuple[str, Any]]:
    """What a link leads to, without what an address asks besides: of rows of one table some."""
    waiting, known, opened = ["/admin/"], {"/admin/"}, Counter[str]()
    while waiting:
        address = waiting.pop()
        kind = re.sub(r"\d+", "N", address)
        opened[kind] += 1
        if opened[kind] > MOST:
            continue
        answer = client.get(address)
        if answer.streaming or "html" not in answer.headers.get("Content-Type", "html"):
            continue
        yield address, answer
        for link in re.findall(r'(?:href|hx-get)="(/admin/[^"?#]*)', answer.content.decode()):
            if link not in known and not link.startswith(NOT_FOLLOWED):
                known.add(link)
                waiting.append(link)


def test_no_page_says_a_sentence_in_english_or_turns_the_direction_of_reading(admin_user):
    fill_with_faults()
    client = Client(headers=CHINESE, raise_request_exception=False)
    client.force_login(admin_user)
    told: dict[str, str] = {}
    escaped = 0
    for address, answer in pages_of(client):
        page = answer.content.decode()
        told |= dict.fromkeys(latin_sentences(page), address)
        escaped += "甲\\u202e" in page
        assert not SIGNS.search(EDITED.sub("", page)), address
        assert int(answer.get("Content-Length", len(answer.content))) == len(answer.content)
    assert told == {}
    assert escaped > 10


def test_no_recorded_fault_is_told_in_english_to_who_reads_chinese():
    """What a tool says is its own."""
    with translation.override("zh-hans"):
        told = {one: explain_error(one) for one in (*MODEL_ERRORS, *SEND_ERRORS, *TOOL_ERRORS)}
    words = [f"{one.sentence} {one.advice}" for raw, one in told.items() if one.sentence != raw]
    assert [one for text in words for one in sentences_in(text)] == []
    assert {raw for raw, one in told.items() if one.sentence == raw} <= set(TOOL_ERRORS)
