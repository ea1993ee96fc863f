"""The browser of this machine, and windows that must stay without a fault."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.window import REQUIRED, Window, find_browser, open_browser
from tests.live_server import LiveServer

OpenWindow = Callable[..., Window]


# Closed before other tests come: Playwright keeps a loop in this thread, and they want theirs.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    path = find_browser()
    if not path:
        message = "no Chromium or Chrome on this machine; install one to run the tests of pages"
        pytest.fail(message) if REQUIRED else pytest.skip(message)
    with open_browser(path) as browser:
        yield browser


@pytest.fixture
def open_window(chromium: Browser, live: LiveServer) -> Iterator[OpenWindow]:
    """Open windows on ``live``, or on another ``server``, signed in as its administrator; no page
    in them may report an error."""
    windows: list[Window] = []

    def open_one(server: LiveServer = live, *, signed_in: bool = True, **options: Any) -> Window:
        window = Window(chromium, server, **options)
        windows.append(window)
        if signed_in:
            window.enter()
        return window

    yield open_one
    for window in windows:
        window.close()
    assert [fault for window in windows for fault in window.faults] == []
