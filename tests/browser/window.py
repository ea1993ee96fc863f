"""A real Chromium with one window, in which everything that goes wrong in a page is noted."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer
from tests.security.people import Person

#: How the system's browser is called, by distribution. The first has no windows at all, and takes
#: half the CPU.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
)
#: What a page may take to show something, in milliseconds.
PATIENCE_MS = 15_000
#: The cookies of the administrator.
_SIGNED_IN: WeakKeyDictionary[LiveServer, dict[str, str]] = WeakKeyDictionary()
#: "required": a machine without a browser fails, as in continuous integration.
REQUIRED = os.environ.get("FROST_TEST_BROWSER") == "required"

#: Elements that are hidden are none to a reader of screens.
BASICS = """() => {
    const seen = (one) => one.checkVisibility({ visibilityProperty: true });
    const named = (one) => one.labels?.length || one.getAttribute("aria-label") || one.title
        || one.getAttribute("aria-labelledby") || one.textContent.trim() || one.value;
    const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
    const fields = all("input:not([type=hidden]):not([type=submit]), textarea, select");
    const unnamed = fields.filter((one) => !one.labels?.length && !one.getAttribute("aria-label")
        && !one.getAttribute("aria-labelledby") && !one.title);
    const heads = all("h1").length;
    return [
        ...(document.documentElement.lang ? [] : ["no language"]),
        ...(document.title.trim() ? [] : ["no title"]),
        ...(heads === 1 ? [] : [`${heads} first headings`]),
        ...unnamed.map((one) => `no label: ${one.outerHTML.slice(0, 150)}`),
        ...all("button, a[href], summary, input[type=submit]")
            .filter((one) => !named(one) && !one.querySelector("img[alt], [title]"))
            .map((one) => `no name: ${one.outerHTML.slice(0, 150)}`),
        ...all("img:not([alt])").map((one) => `no text: ${one.outerHTML.slice(0, 150)}`),
    ];
}"""

#: Some elements over the edge, if one has to scroll sideways to see them.
PLACES = """async (links) => {
    const places = new Set(links.map((link) => link.getAttribute("href")));
    for (const place of [...places]) {
        const text = await (await fetch(place)).text();
        const found = new DOMParser().parseFromString(text, "text/html");
        for (const tab of found.querySelectorAll("nav.tabs a")) {
            places.add(tab.getAttribute("href"));
        }
    }
    return [...places];
}"""
TOO_WIDE = """() => {
    const page = document.documentElement;
    if (page.scrollWidth <= page.clientWidth) return [];
    const shown = (one) => one.outerHTML.slice(0, 200);
    const over = (one) => one.getBoundingClientRect().right > page.clientWidth + 0.5;
    const found = [...document.body.querySelectorAll("*")].filter(over).slice(-3);
    return [`by ${page.scrollWidth - page.clientWidth}`, ...found.map(shown)];
}"""


def find_browser() -> str:
    """The path of the system's Chromium or Chrome; "" where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


@contextmanager
def open_browser(path: str) -> Iterator[Browser]:
    """The browser at ``path``, without a screen."""
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        # In containers there is no user namespace to build the sandbox from; only our pages are
        # opened.
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


class Authenticator:
    """What a window asks for passkeys, in software (WebAuthn of the DevTools protocol)."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("WebAuthn.enable")
        options = {"protocol": "ctap2", "transport": "internal", "isUserVerified": True}
        able = {"hasResidentKey": True, "hasUserVerification": True}
        made = self._session.send("WebAuthn.addVirtualAuthenticator", {"options": options | able})
        self._id = made["authenticatorId"]

    def recognise(self, is_known: bool) -> None:
        """Whether it takes who touches it for its owner."""
        given = {"authenticatorId": self._id, "isUserVerified": is_known}
        self._session.send("WebAuthn.setUserVerified", given)


class Window:
    """One person's window. ``faults`` are the errors that its pages reported: of scripts, of what
    they loaded, and refusals of the content security policy."""

    def __init__(
        self,
        browser: Browser,
        server: LiveServer,
        *,
        language: str = "zh-CN",
        scheme: str = "light",
        width: int = 1280,
        **options: Any,
    ) -> None:
        self.server = server
        self.faults: list[str] = []
        self._context: BrowserContext = browser.new_context(
            locale=language,
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": width, "height": 800},
            base_url=server.url,
            **options,
        )
        self._context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self._context.new_page()
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))

    def enter(self) -> None:
        """Be signed in as the administrator, as all windows on the server are: once for all."""
        if self.server not in _SIGNED_IN:
            person = Person(self.server, ADMIN, ADMIN_PASSWORD)
            _SIGNED_IN[self.server] = person.cookies()
            person.close()
        cookies = _SIGNED_IN[self.server].items()
        self._context.add_cookies(
            [{"name": name, "value": value, "url": self.server.url} for name, value in cookies]
        )

    def sign_in(self, user: str = ADMIN, password: str = ADMIN_PASSWORD) -> None:
        """By the page for it."""
        self.page.goto("/admin/login/")
        self.page.fill("#id_username", user)
        self.page.fill("#id_password", password)
        self.page.press("#id_password", "Enter")
        self.page.wait_for_url(lambda url: "/login/" not in url)

    def add_authenticator(self) -> Authenticator:
        return Authenticator(self.page)

    def look(self, scheme: str, width: int) -> None:
        """Show the page, and what is opened from now on, in another colour scheme and width."""
        self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        self.page.set_viewport_size({"width": width, "height": 800})

    def places(self) -> list[str]:
        """The addresses in the navigation of the page, and in the tabs of those."""
        links = self.page.locator("#nav-sidebar a[href^='/admin/']")
        found: list[str] = links.evaluate_all(PLACES)
        return found

    def too_wide(self) -> list[str]:
        """What makes the page wider than the window."""
        found: list[str] = self.page.evaluate(TOO_WIDE)
        return found

    def basics(self) -> list[str]:
        """What a reader of screens misses in the page: its language, one first heading, names of
        what can be filled in or pressed, texts of pictures."""
        found: list[str] = self.page.evaluate(BASICS)
        return found

    def close(self) -> None:
        self._context.close()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")
