"""The page of a chat in a browser: followed live, read backwards, and acted in."""

import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenWindow
from tests.browser.dialled import Dialled, dial
from tests.cast import fresh_id
from tests.environment import PATIENCE
from tests.live_server import LiveServer

pytestmark = pytest.mark.slow

GROUP, ANN = fresh_id(), 20001


@pytest.fixture
def bot(live: LiveServer):
    with dial(live) as bot:
        yield bot


def open_chat(page: Page, live: LiveServer, peer: int) -> None:
    end = time.monotonic() + PATIENCE
    while not (found := live.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(peer))):
        assert time.monotonic() < end, f"nothing was said in {peer}"
        time.sleep(0.02)
    page.goto(f"/admin/agent/chatsession/{found[0]['id']}/change/")
    expect(page.locator(".live-on")).to_be_visible()


def start_chat(bot: Dialled, words: str = "ping") -> int:
    """A private chat that has had its first answer; whose it is."""
    person = fresh_id()
    bot.say_private(person, words)
    bot.heard()
    return person


def test_what_is_said_and_answered_appears_by_itself(live, bot, model, open_window: OpenWindow):
    model.script(["pong", "und noch einmal"])
    person = start_chat(bot)
    page = open_window().page
    open_chat(page, live, person)
    page.evaluate("window.isSamePage = true")
    bot.say_private(person, "<b>again</b>")
    expect(page.locator("li.said-by-person").last).to_contain_text("<b>again</b>")
    expect(page.locator("li.said-by-bot").last).to_contain_text("und noch einmal")
    assert page.evaluate("window.isSamePage")
    assert bot.heard() == "und noch einmal"


def test_what_else_happens_appears_by_itself_each_once(live, bot, open_window: OpenWindow):
    group = fresh_id()
    in_group = {"group_id": group, "user_id": ANN}
    bot.tell("notice", notice_type="group_increase", **in_group)
    bot.say_group(group, ANN, "hello", mention=False)
    bot.tell("notice", notice_type="group_card", card_new="<b>A</b>", **in_group)
    page = open_window(language="en").page
    open_chat(page, live, group)
    events = page.locator("li.event")
    expect(events).to_have_count(2)
    for name in ("B", "C"):
        bot.tell("notice", notice_type="group_card", card_new=name, **in_group)
        expect(events.last).to_contain_text(f"“{name}”")
    bot.say_group(group, ANN, "after", mention=False)
    expect(page.locator("ol.chat > li").last).to_contain_text("after")
    expect(events).to_have_count(4)
    expect(events.nth(1)).to_contain_text("“<b>A</b>”")


def test_older_messages_come_as_one_scrolls_up(live, bot, model, open_window: OpenWindow):
    model.script(["pong"])
    group = fresh_id()
    for number in range(90):
        bot.say_group(group, ANN, f"message {number}.", mention=False)
    bot.say_group(group, ANN, "ping")
    bot.heard()
    page = open_window().page
    open_chat(page, live, group)
    shown = page.locator("ol.chat")
    expect(shown).to_contain_text("pong")
    expect(shown).not_to_contain_text("message 0.")
    page.locator(".chat-box").hover()
    page.mouse.wheel(0, -100_000)
    expect(shown).to_contain_text("message 0.")
    expect(page.get_by_text("message 41.")).to_be_in_viewport()


def test_operator_takes_over_answers_and_hands_back(live, bot, model, open_window: OpenWindow):
    model.script(["pong", "I am back"])
    person = start_chat(bot)
    page = open_window().page
    open_chat(page, live, person)
    page.click("#acts form[action$='take-over/'] button")
    expect(page.locator("#taken-over")).to_be_visible()
    bot.say_private(person, "a hard question")
    expect(page.locator("li.said-by-person").last).to_contain_text("a hard question")
    page.fill("#compose-text", "a word by hand")
    page.click("#compose button.default")
    assert bot.heard() == "a word by hand"
    page.click("#taken-over button")
    expect(page.locator("#taken-over")).to_have_count(0)
    bot.say_private(person, "are you there?")
    assert bot.heard() == "I am back"
    assert "a word by hand" in str(model.requests[-1].messages)


def press_until(page: Page, key: str, selector: str, most: int = 150) -> None:
    """Press ``key`` until the focus is on what ``selector`` finds."""
    for _press in range(most):
        if page.evaluate("one => document.activeElement.matches(one)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} never reaches {selector}")


def test_keyboard_alone_is_enough_to_answer(live, bot, model, open_window: OpenWindow):
    model.script(["pong"])
    person = start_chat(bot)
    page = open_window(signed_in=False).page
    page.goto("/admin/login/")
    press_until(page, "Tab", "#id_username")
    page.keyboard.type("admin")
    press_until(page, "Tab", "#id_password")
    page.keyboard.type("a long password for tests")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/")
    press_until(page, "Tab", "#nav-sidebar a[href='/admin/agent/chatsession/']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/chatsession/")
    (row,) = live.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(person))
    press_until(page, "Tab", f"#result_list a[href*='/chatsession/{row['id']}/']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/change/**")
    press_until(page, "Tab", "#compose-text")
    page.keyboard.type("by keyboard")
    press_until(page, "Tab", "#compose button.default")
    page.keyboard.press("Enter")
    assert bot.heard() == "by keyboard"
