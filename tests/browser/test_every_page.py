"""The admin's pages in a real browser: no error, no refusal of the policy, nothing cut off, nothing
without a name, in both languages."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import dial
from tests.browser.window import Window
from tests.cast import fresh_id
from tests.scripted_model import call

pytestmark = pytest.mark.slow

#: How pages look at first and then, without being loaded again: the scheme and the width.
FIRST, THEN = ("light", 360), ("dark", 1280)
LONG = "a very long name that somebody has chosen " * 3 + "W" * 60
#: What is looked at in Chinese as well, whose words are shorter.
DAILY = ("/admin/", "/admin/agent/run/", "/admin/agent/manners/add/", "/admin/spending/")


def check(window: Window, *links: str) -> None:
    for link in links:
        window.look(*FIRST)
        answer = window.page.goto(link)
        assert answer
        assert answer.status == 200, link
        for look in (FIRST, THEN):
            window.look(*look)
            assert window.too_wide() == [], link
            assert window.basics() == [], link


def test_every_place_of_the_navigation_opens_without_a_fault(open_window: OpenWindow):
    window = open_window(language="en")
    window.page.goto("/admin/")
    links = window.places()
    assert len(links) > 15
    check(window, *links)
    check(open_window(language="zh-CN"), *DAILY)


@pytest.fixture
def rows(live, model) -> list[str]:
    """The pages of a chat with a tool call and long words, and of what belongs to it."""
    answer = f"{LONG} https://example.com/{LONG.encode().hex()}"
    model.script([call("get_weather", city="北京" * 40), answer])
    group, person = fresh_id(), fresh_id()
    with dial(live) as bot:
        sender = {"user_id": person, "nickname": LONG, "card": LONG, "role": "admin"}
        bot.say_group(group, person, "w" * 300, sender=sender, group_name=LONG)
        bot.heard()
    found = []
    for model_name, table, condition in PAGES:
        (row,) = live.rows(f"SELECT max(id) AS id FROM {table} {condition}")
        found.append(f"/admin/{model_name}/{row['id']}/change/")
    return [*found, f"/admin/people/?q={person}"]


PAGES = [
    ("agent/chatsession", "agent_chatsession", "WHERE kind = 'group'"),
    ("agent/message", "agent_message", ""),
    ("agent/run", "agent_run", ""),
    ("agent/toolcall", "agent_toolcall", ""),
    ("agent/step", "agent_step", ""),
    ("onebot/bot", "onebot_bot", ""),
    ("tools/toolconfig", "tools_toolconfig", "WHERE name = 'get_weather'"),
]


@pytest.mark.parametrize("language", ["zh-CN", "en"])
def test_pages_of_single_rows_open_without_a_fault(
    open_window: OpenWindow, rows: list[str], language: str
):
    check(open_window(language=language), *rows)


def test_switch_changes_the_language_for_good(open_window: OpenWindow):
    page = open_window(language="zh-CN").page
    page.goto("/admin/agent/chatsession/?q=700")
    for code, words in (("en", "Chat"), ("zh-hans", "会话")):
        page.click("#user-menu summary")
        page.click(f"#language-switch button[value='{code}']")
        expect(page.locator("html")).to_have_attribute("lang", code)
        expect(page.locator("h1").first).to_contain_text(words)
        assert page.url.endswith("/admin/agent/chatsession/?q=700")
        page.reload()
        expect(page.locator("html")).to_have_attribute("lang", code)
