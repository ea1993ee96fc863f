"""The admin's pages in a real browser: no error, no refusal of the policy, nothing cut off."""

import pytest

from tests.browser.conftest import OpenWindow

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("language", "scheme"), [("zh-CN", "light"), ("en", "dark")])
@pytest.mark.parametrize("width", [1280, 360])
def test_every_place_of_the_navigation_opens_without_a_fault(
    open_window: OpenWindow, language: str, scheme: str, width: int
):
    window = open_window(language=language, scheme=scheme, width=width)
    links = window.page.locator("#nav-sidebar a[href^='/admin/']").evaluate_all(
        "links => [...new Set(links.map(link => link.getAttribute('href')))]"
    )
    assert len(links) > 15
    for link in links:
        window.page.goto(link)
        assert window.overflow() <= 0, f"{link} is too wide"
