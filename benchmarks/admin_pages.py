"""Times the admin's pages as a browser would ask for them, one at a time."""

import html
import re
import statistics
import time
from collections.abc import Iterator
from itertools import combinations
from urllib.parse import parse_qsl

import requests

from benchmarks.process import ADMIN, HOST, PASSWORD

LISTS = (
    "/admin/agent/message/",
    "/admin/agent/chatsession/",
    "/admin/agent/run/",
    "/admin/agent/toolcall/",
    "/admin/tools/toolconfig/",
    "/admin/onebot/bot/",
)
SEARCHES = ("Beijing", "20000007", "没有这样的话", "hello")
ROUNDS = 5
MOST_LINKS = 60
TIMEOUT_SECONDS = 60
_LINK = re.compile(r'href="(\?[^"#]*)"')
_ROW = re.compile(r'href="(/admin/\w+/\w+/\d+/change/)')
_FORM_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Admin:
    """A browser that is logged in."""

    def __init__(self, port: int) -> None:
        self.address = f"http://{HOST}:{port}"
        self._session = requests.Session()
        self._session.trust_env = False
        self.broken: dict[str, int] = {}
        """Pages that did not answer 200, and what they answered."""

    def login(self) -> None:
        """Raises requests.HTTPError, or RuntimeError where the account is not let in."""
        page = self._session.get(f"{self.address}/admin/login/", timeout=TIMEOUT_SECONDS)
        page.raise_for_status()
        token = _FORM_TOKEN.search(page.text)
        fields = {
            "username": ADMIN,
            "password": PASSWORD,
            "next": "/admin/",
            "csrfmiddlewaretoken": token[1] if token else "",
        }
        answer = self._session.post(
            page.url, data=fields, timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
        if answer.status_code != 302:
            raise RuntimeError(
                f"the admin did not let the benchmark's account in: status {answer.status_code}"
            )

    def page(self, path: str) -> tuple[float, str]:
        """``(milliseconds, text)``; a redirect is followed by nobody and counts as broken."""
        started = time.perf_counter()
        answer = self._session.get(
            self.address + path, timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
        taken = (time.perf_counter() - started) * 1000
        if answer.status_code != 200:
            self.broken[path] = answer.status_code
        return taken, answer.text

    def median_ms(self, path: str) -> float:
        """Of several askings after one that warms up; a page twice as slow as could be forgiven is
        asked once."""
        first, _ = self.page(path)
        if path in self.broken or first > 5000:
            return round(first, 1)
        return round(statistics.median(self.page(path)[0] for _ in range(ROUNDS)), 1)


def list_queries(text: str) -> list[str]:
    """Every query that a list's first page links to: filters, orders, dates, and of the pages the
    last and the middle one."""
    queries = dict.fromkeys(html.unescape(link) for link in _LINK.findall(text))
    deep = max(
        (int(value) for query in queries for name, value in parse_qsl(query[1:]) if name == "p"),
        default=0,
    )
    chosen = [query for query in queries if query != "?" and not re.search(r"[?&]p=", query)]
    return chosen[:MOST_LINKS] + ([f"?p={deep}", f"?p={deep // 2}"] if deep > 1 else [])


def pairs(queries: list[str]) -> list[str]:
    """Two narrowings at once, one of each pair of parameters: what no single index may serve."""
    by_name: dict[str, list[str]] = {}
    for query in queries:
        name, _, value = query[1:].partition("=")
        if value and "&" not in value and name != "p":
            by_name.setdefault(name, []).append(query[1:])
    return [f"?{some[-1]}&{others[0]}" for some, others in combinations(by_name.values(), 2)]


def paths(admin: Admin, *pages: str) -> Iterator[str]:
    """Each page, what it links to of itself alone and in pairs, searches where it has a search, and
    its first row's page."""
    for page in pages:
        yield page
        _, text = admin.page(page)
        queries = list_queries(text)
        if 'name="q"' in text:
            queries += [f"?q={word}" for word in SEARCHES]
        yield from (page + query for query in queries + pairs(queries))
        if row := _ROW.search(text):
            yield row[1]


def time_pages(admin: Admin, chosen: Iterator[str], deadline: float) -> dict[str, float]:
    """Milliseconds of each path; what comes after ``deadline`` (monotonic) is left out."""
    times: dict[str, float] = {}
    for path in chosen:
        if time.monotonic() > deadline:
            break
        if path not in times:
            times[path] = admin.median_ms(path)
    return times
