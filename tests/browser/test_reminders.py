"""Reminders in a browser: added and steered on their page, seen beside their chat, and said."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import dial
from tests.browser.test_chat_page import open_chat
from tests.cast import fresh_id

pytestmark = pytest.mark.slow


@pytest.fixture
def group(live) -> int:
    """A group with a name like no other."""
    number = fresh_id()
    with dial(live) as bot:
        bot.say_group(number, 20001, "hello", mention=False, group_name=f"Kitchen {number}")
    return number


def act(page: Page, button: str, told: str) -> None:
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator(".messagelist")).to_contain_text(told)


def test_one_is_added_by_the_name_of_its_chat_and_steered(
    live, open_window: OpenWindow, group: int
):
    window = open_window(language="en")
    page = window.page
    open_chat(page, live, group)
    chat = page.url
    page.goto("/admin/agent/reminder/add/")
    page.locator("#id_session").press_sequentially(f"kitchen {group}")
    page.locator(".field-session [role=option]").click()
    assert page.input_value("#id_session").endswith(f":group:{group}")
    expect(page.locator(".field-session .chosen")).to_have_text(f"Kitchen {group}")
    page.fill("#id_text", "the oven")
    page.fill("#id_due_at", "2099-01-01T08:00:00")
    assert window.basics() == []
    page.click("input[name=_continue]")
    expect(page.locator(".messagelist .success")).to_be_visible()
    act(page, "Pause", "Paused")
    act(page, "Resume", "It goes on")
    page.goto(f"{chat}?panel=reminders")
    line = page.locator("#panel .panel-links li", has_text="the oven")
    expect(line).to_contain_text("2099-01-01 08:00")
    line.get_by_role("link").click()
    act(page, "Cancel it", "Cancelled")
    expect(page.get_by_role("button", name="Resume", exact=True)).to_have_count(0)


def test_one_that_is_set_in_the_playground_is_said_there(open_window: OpenWindow):
    page = open_window().page
    page.goto("/admin/playground/")
    expect(page.locator("#play-status[data-state=connected]")).to_be_visible()
    page.click("[data-chat='private:1001']")
    page.fill("#play-text", "/提醒 1秒后 喝水")
    page.press("#play-text", "Enter")
    said = page.locator(".play-by-bot")
    expect(said).to_have_count(2)
    expect(said.first).to_contain_text("#")
    expect(said.last).to_contain_text("提醒：喝水")
