"""A real Chromium with one window, in which everything that goes wrong in a page is noted."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer

#: How the system's browser is called, by distribution.
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
#: What a page may take to show something, in milliseconds.
PATIENCE_MS = 15_000
#: "required": a machine without a browser fails, as in continuous integration.
REQUIRED = os.environ.get("FROST_TEST_BROWSER") == "required"


def find_browser() -> str:
    """The path of the system's Chromium or Chrome; "" where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


@contextmanager
def open_browser(path: str) -> Iterator[Browser]:
    """The browser at ``path``, without a screen."""
    with sync_playwright() as playwright:
        # In containers there is no user namespace to build the sandbox from; only our pages are
        # opened.
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


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
    ) -> None:
        self.server = server
        self.faults: list[str] = []
        self._context: BrowserContext = browser.new_context(
            locale=language,
            color_scheme="dark" if scheme == "dark" else "light",
            viewport={"width": width, "height": 800},
            base_url=server.url,
        )
        self._context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self._context.new_page()
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))

    def sign_in(self, user: str = ADMIN, password: str = ADMIN_PASSWORD) -> None:
        self.page.goto("/admin/login/")
        self.page.fill("#id_username", user)
        self.page.fill("#id_password", password)
        self.page.press("#id_password", "Enter")
        self.page.wait_for_url(lambda url: "/login/" not in url)

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        wide: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return wide

    def close(self) -> None:
        self._context.close()

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")
