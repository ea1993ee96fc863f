"""Fills in the admin's forms as a browser would: what a page does not let one type is not sent."""

import re
from html.parser import HTMLParser

import requests

from benchmarks.process import ADMIN, HOST, PASSWORD

SECONDS = 60


class _Form(HTMLParser):
    """The fields of the form that has the CSRF token, as they stand."""

    def __init__(self, action: str = "") -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._select = self._area = ""
        self._first = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        name = values.get("name", "")
        if tag == "input" and name and values.get("type") not in ("submit", "button", "file"):
            if values.get("type") not in ("checkbox", "radio"):
                self.fields[name] = values.get("value", "")
            elif "checked" in values:
                self.fields[name] = values.get("value", "on")
        elif tag == "select":
            self._select, self._first = name, ""
        elif tag == "option" and self._select:
            if "selected" in values or self._select not in self.fields:
                self.fields[self._select] = values.get("value", "")
        elif tag == "textarea":
            self._area = name
            self.fields[name] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.fields[self._area] += data


class AdminForms:
    """A browser that is signed in as the administrator."""

    def __init__(self, port: int) -> None:
        self.address = f"http://{HOST}:{port}"
        self._session = requests.Session()
        self._session.trust_env = False
        self.save("/admin/login/", {"username": ADMIN, "password": PASSWORD})

    def page(self, path: str) -> str:
        answer = self._session.get(self.address + path, timeout=SECONDS)
        answer.raise_for_status()
        return answer.text

    def save(self, path: str, changes: dict[str, str]) -> str:
        """Change some fields of the form at ``path``, and save it. Raises :class:`ValueError` with
        the page's complaints where it is refused."""
        form = _Form()
        form.feed(self.page(path))
        fields = form.fields | changes
        answer = self._session.post(
            self.address + path,
            data=fields,
            timeout=SECONDS,
            allow_redirects=False,
            headers={"Referer": self.address + path},
        )
        if answer.status_code != 302:
            found = re.findall(r'class="error[^>]*>(.*?)</', answer.text, re.DOTALL)
            said = " / ".join(re.sub(r"<[^>]+>|\s+", " ", one).strip() for one in found)
            raise ValueError(f"{path} answered {answer.status_code}: {said[:500]}")
        return answer.headers["Location"]
