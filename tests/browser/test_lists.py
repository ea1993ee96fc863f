"""Runs and tools are worked on in their lists: a run opens beside it, a tool is switched in it."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import dial

pytestmark = pytest.mark.slow


def answer_twice(live, model) -> None:
    model.script(["first", "second"])
    with dial(live) as bot:
        for words in ("one", "two"):
            bot.say_private(20001, words)
            bot.heard()


def test_run_opens_beside_the_list_and_two_side_by_side(live, model, open_window: OpenWindow):
    answer_twice(live, model)
    page = open_window(language="en").page
    page.goto("/admin/agent/run/")
    links = page.locator("#result_list tbody th a")
    panel = page.locator("#run-panel")
    expect(panel).to_be_hidden()
    rows = page.locator("#result_list tbody tr")
    heights = rows.evaluate_all("all => all.map((one) => one.getBoundingClientRect().height)")
    assert all(30 <= height <= 36 for height in heights[:2]), heights
    links.nth(0).click()
    expect(panel.locator("#run")).to_contain_text("second")
    assert page.url.endswith(f"/admin/agent/run/#run-{links.nth(0).inner_text()[1:]}")
    page.keyboard.press("ArrowDown")
    expect(panel.locator("#run")).to_contain_text("first")
    page.reload()  # the address names the run
    expect(panel.locator("#run")).to_contain_text("first")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    for box in range(2):
        page.locator("input[name=run]").nth(box).check()
    page.click("#compare button")
    expect(panel.locator(".compared .module")).to_have_count(2)


def test_list_works_with_scripts_off(live, model, open_window: OpenWindow):
    answer_twice(live, model)
    page = open_window(language="en", java_script_enabled=False).page
    page.goto("/admin/agent/run/")
    for box in range(2):
        page.locator("input[name=run]").nth(box).check()
    page.click("#compare button")
    expect(page.locator(".compared .module")).to_have_count(2)
    page.go_back()
    page.locator("#result_list tbody th a").first.click()
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("#run")).to_be_visible()
    toggle(page)
    expect(page).to_have_url(f"{live.url}/admin/tools/toolconfig/?q=get_weather#{row_of(page)}")
    toggle(page)


def row_of(page: Page) -> str:
    return page.locator("#result_list tbody tr:not(.source)").get_attribute("id") or ""


def toggle(page: Page) -> None:
    """Switch the weather the other way."""
    page.goto("/admin/tools/toolconfig/?q=get_weather")
    switch = page.locator(".field-enabled .switch")
    before = switch.get_attribute("aria-pressed")
    count = page.locator("tr.source .quiet").inner_text()
    switch.click()
    after = {"true": "false", "false": "true"}[before or ""]
    expect(switch).to_have_attribute("aria-pressed", after)
    expect(page.locator("tr.source .quiet")).not_to_have_text(count)


def test_switch_acts_at_once_keeps_the_focus_and_stays_after_a_reload(
    live, open_window: OpenWindow
):
    page = open_window(language="en").page
    toggle(page)
    assert page.url.endswith("?q=get_weather")  # nothing was loaded anew
    switch = page.locator(".field-enabled .switch")
    expect(switch).to_be_focused()
    pressed = switch.get_attribute("aria-pressed")
    page.reload()
    expect(switch).to_have_attribute("aria-pressed", pressed or "")
    toggle(page)


def test_refusal_of_a_switch_is_told(live, open_window: OpenWindow):
    page = open_window(language="en").page
    page.goto("/admin/tools/toolconfig/?q=get_weather")
    switch = page.locator(".field-approval .switch")
    switch.evaluate("one => { one.value = 'perhaps'; }")
    switch.click()
    expect(page.locator("#outcome[role=status]")).to_contain_text("get_weather")
    expect(switch).to_have_attribute("aria-pressed", "false")
